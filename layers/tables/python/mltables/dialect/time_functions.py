"""Translates Databricks' SQL date and time functions with a unit, field or format to DuckDB's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from mltables.dialect.macros import FUNCTIONS
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.text_functions import literal, quoted

if TYPE_CHECKING:
    from mltables.dialect.sql_generator import Generator

MICROSECONDS: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""The lengths of units of time, by name."""
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_FIELDS: Final = {
    "year": "year",
    "y": "year",
    "years": "year",
    "yr": "year",
    "yrs": "year",
    "yearofweek": "yearofweek",
    "quarter": "quarter",
    "qtr": "quarter",
    "month": "month",
    "mon": "month",
    "mons": "month",
    "months": "month",
    "week": "week",
    "w": "week",
    "weeks": "week",
    "day": "day",
    "d": "day",
    "days": "day",
    "dayofweek": "dayofweek",
    "dow": "dayofweek",
    "dayofweek_iso": "inner",
    "dow_iso": "inner",
    "doy": "dayofyear",
    "hour": "hour",
    "h": "hour",
    "hours": "hour",
    "hr": "hour",
    "hrs": "hour",
    "minute": "minute",
    "m": "minute",
    "min": "minute",
    "mins": "minute",
    "minutes": "minute",
    "second": "second",
    "s": "second",
    "sec": "second",
    "secs": "second",
    "seconds": "second",
}
_SIZES: Final = ("day", "hour", "minute", "second")
_NUMBERS: Final = {
    "hour": r"(?:[01]?\d|2[0-3])",
    "minute": r"[0-5]?\d",
    "second": r"[0-5]?\d",
}
"""Patterns of the numbers of units after the first one."""
_ANY: Final = r"\d+"
_FRACTION: Final = r"(?:\.\d+)?"
_GAPS: Final = {"day": " +", "hour": ":", "minute": ":"}
"""What stands after the number of a unit in an interval of several units."""


def _spelling(first: str, last: str) -> re.Pattern[str]:
    """Returns the pattern of the text of an interval from a unit to a smaller one."""
    units = _SIZES[_SIZES.index(first) : _SIZES.index(last) + 1]
    numbers = "".join(
        f"(?P<{unit}>{_ANY if unit == first else _NUMBERS[unit]}"
        f"{_FRACTION if unit == 'second' else ''}){_GAPS[unit] if unit != last else ''}"
        for unit in units
    )
    return re.compile(rf"\s*(?P<sign>[+-]?){numbers}\s*", re.ASCII)


_SPANS: Final = {
    ("year", "month"): re.compile(
        r"\s*(?P<sign>[+-]?)(?P<year>\d+)-(?P<month>\d|1[01])\s*", re.ASCII
    ),
    **{
        (first, last): _spelling(first, last)
        for place, first in enumerate(_SIZES)
        for last in _SIZES[place + 1 :]
    },
}
"""Patterns of the texts of intervals of several units, by the first and the last unit."""
_LETTERS: Final = {
    "yyyy": "%Y",
    "y": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%-m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "d": "%-d",
    "HH": "%H",
    "H": "%-H",
    "hh": "%I",
    "h": "%-I",
    "mm": "%M",
    "m": "%-M",
    "ss": "%S",
    "s": "%-S",
    "SSS": "%g",
    "SSSSSS": "%f",
    "a": "%p",
    "E": "%a",
    "EEE": "%a",
    "EEEE": "%A",
    "DDD": "%j",
    "D": "%-j",
}
_PIECES: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")


def _unit(node: exp.Expr) -> str:
    """Returns the unit's name: ``day`` for DAY, 'day' or DAYS."""
    name = node.name.lower()
    return name[:-1] if name.endswith("s") and name[:-1] in {*MICROSECONDS, *_MONTHS} else name


def _known_unit(node: exp.Expr) -> str:
    unit = _unit(node)
    if unit == "dayofyear":
        unit = "day"
    if unit not in MICROSECONDS and unit not in _MONTHS:
        raise StatementRefused(
            f"{node.name} is no unit: use one of {', '.join([*MICROSECONDS, *_MONTHS])}."
        )
    return unit


def is_interval(node: exp.Expr) -> bool:
    """Whether an SQL expression is a time interval by its syntax (``INTERVAL '1' DAY``), or a sum
    of such intervals."""
    if isinstance(node, exp.Paren):
        return is_interval(node.this)
    if isinstance(node, exp.Add):
        return is_interval(node.this) and is_interval(node.expression)
    return isinstance(node, exp.Interval) or (
        isinstance(node, exp.Anonymous) and node.name.lower() == "make_dt_interval"
    )


def is_of_days(interval: exp.Expr) -> bool:
    """Whether the syntax of an SQL interval shows that it consists of whole days or months."""
    if isinstance(interval, exp.Paren):
        return is_of_days(interval.this)
    if isinstance(interval, exp.Add):
        return is_of_days(interval.this) and is_of_days(interval.expression)
    unit = interval.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        unit = unit.this if unit.this.name.lower() == "year" else None
    return isinstance(unit, exp.Var) and _unit(unit) in {"day", "week", *_MONTHS}


def interval(writer: Generator, node: exp.Interval) -> str:
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        return _span(node.this, unit)
    if not isinstance(unit, exp.Var) or node.this is None:
        raise StatementRefused("An interval is a number and a unit here, such as INTERVAL 7 DAYS.")
    name = _known_unit(unit)
    value = node.this
    if isinstance(value, exp.Literal):
        if not re.fullmatch(r"\s*[+-]?\d+\s*", value.name) and name in _MONTHS:
            raise StatementRefused(f"An interval of {name}s is a whole number.")
        if not re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", value.name):
            raise StatementRefused(
                "An interval is a number and a unit here, such as INTERVAL 7 DAYS."
            )
        return f"INTERVAL {quoted(f'{value.name.strip()} {name}')}"
    return f"(INTERVAL '1 {name}' * CAST({writer.text(value)} AS INTEGER))"


def _span(value: exp.Expr, units: exp.IntervalSpan) -> str:
    """Returns the DuckDB SQL of an interval of several units, as ``INTERVAL '1 02:30' DAY TO
    MINUTE``."""
    first, last = (_unit(units.args[key]) for key in ("this", "expression"))
    pattern = _SPANS.get((first, last))
    match = pattern.fullmatch(literal(value, "An interval of several units")) if pattern else None
    if match is None:
        raise StatementRefused(
            "An interval of several units is like INTERVAL '1 02:30' DAY TO MINUTE here: its units "
            "are neighbours or DAY, HOUR or MINUTE TO a smaller one, each with its number."
        )
    parts = match.groupdict()
    sign = "-" if parts.pop("sign") == "-" else ""
    texts = [f"{sign}{number} {unit}" for unit, number in parts.items()]
    return f"INTERVAL {quoted(' '.join(texts))}"


def _day_time_interval(writer: Generator, call: exp.Anonymous) -> str:
    """Returns the DuckDB SQL of ``make_dt_interval(days, hours, minutes, seconds)``; missing parts
    are 0."""
    writer.count(call, 0, 4)
    given = [writer.text(argument) for argument in call.expressions]
    if any(isinstance(argument, exp.Null) for argument in call.expressions):
        return "CAST(NULL AS INTERVAL)"
    return f"inner_day_time({', '.join([*given, *['0'] * (4 - len(given))])})"


def extract(writer: Generator, field: str, value: exp.Expr) -> str:
    name = _FIELDS.get(field.lower())
    if name is None:
        raise StatementRefused(f"EXTRACT knows no field {field} here.")
    (time,) = writer.arguments([value], ("time",))
    if isinstance(value, exp.Sub):
        # Of an interval.
        if name not in {"day", "hour", "minute", "second"}:
            raise StatementRefused(
                "EXTRACT of an interval knows DAY, HOUR, MINUTE and SECOND here."
            )
        time = writer.text(value)
        if name != "second":
            return f"CAST({name}({time}) AS INTEGER)"
    if name == "second":
        return f"inner_extract_second({time})"
    if name == "inner":
        return f"inner_extract_dayofweek_iso({time})"
    return f"spark_{name}({time})"


def _date_part(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 2, 2)
    return extract(writer, literal(call.expressions[0], "The field"), call.expressions[1])


def _difference(writer: Generator, call: exp.Anonymous) -> str:
    """Returns the DuckDB SQL of ``datediff(end, start)``, which counts days, or of ``datediff(unit,
    start, end)``, which counts whole units."""
    writer.count(call, 2, 3)
    if len(call.expressions) == 2:
        if call.name.lower() == "timestampdiff":
            raise StatementRefused("timestampdiff() takes a unit, a start and an end.")
        return f"inner_days({', '.join(writer.arguments(call.expressions, ('day', 'day')))})"
    unit = _known_unit(call.expressions[0])
    a, b = writer.arguments(call.expressions[1:], ("time", "time"))
    if unit in _MONTHS:
        return f"inner_months_passed({a}, {b}, {_MONTHS[unit]})"
    return f"inner_passed({a}, {b}, {MICROSECONDS[unit]})"


def _addition(writer: Generator, call: exp.Anonymous) -> str | None:
    """Returns the DuckDB SQL of ``date_add(unit, number, start)``, or of ``date_add(start,
    days)``."""
    if len(call.expressions) == 2 and call.name.lower() != "timestampadd":
        days = writer.arguments(call.expressions, FUNCTIONS["date_add"])
        return f"spark_date_add({', '.join(days)})"
    writer.count(call, 3, 3)
    unit, number, start = call.expressions
    (time,) = writer.arguments([start], ("time",))
    return f"inner_later({time}, {writer.text(number)}, INTERVAL '1 {_known_unit(unit)}')"


def strftime_format(node: exp.Expr, function: str) -> str:
    """Returns the strftime format for a Java date pattern, as an SQL literal.

    Raises:
        StatementRefused: the pattern is not a literal, or strftime cannot express it.
    """
    pattern_text = ""
    position = 0
    text = literal(node, f"The pattern of {function}()")
    for match in _PIECES.finditer(text):
        if match.start() != position:
            break
        position = match.end()
        piece = match[0]
        if match[1] is not None:
            pattern_text += (match[1].replace("''", "'") or "'").replace("%", "%%")
        elif match[2] is None:
            pattern_text += piece.replace("%", "%%")
        elif piece in _LETTERS:
            pattern_text += _LETTERS[piece]
        else:
            raise StatementRefused(f"The pattern of {function}() may not have {piece} here.")
    if position != len(text):
        raise StatementRefused(f"The pattern of {function}() cannot be read.")
    return quoted(pattern_text)


def _date_format(writer: Generator, call: exp.Anonymous) -> str:
    writer.count(call, 2, 2)
    (time,) = writer.arguments(call.expressions[:1], ("time",))
    return f"strftime(inner_utc({time}), {strftime_format(call.expressions[1], call.name)})"


def _from_unixtime(writer: Generator, call: exp.Anonymous) -> str | None:
    writer.count(call, 1, 2)
    if len(call.expressions) == 1:
        return None
    shape = strftime_format(call.expressions[1], call.name)
    return f"strftime(to_timestamp(inner_bigint({writer.text(call.expressions[0])})), {shape})"


def _parsed(writer: Generator, call: exp.Anonymous) -> str | None:
    """Returns the DuckDB SQL of ``to_date(text, pattern)`` and similar functions; None for the form
    without a pattern."""
    if len(call.expressions) < 2:
        return None
    writer.count(call, 1, 2)
    text, shape = call.expressions
    name = call.name.lower()
    made = f"CAST(strptime({writer.text(text)}, {strftime_format(shape, name)}) AS TIMESTAMPTZ)"
    if name == "to_date":
        return f"CAST({made} AS DATE)"
    if name == "try_to_timestamp":
        return f"TRY({made})"
    return made if name == "to_timestamp" else f"inner_seconds({made})"


def _window(writer: Generator, call: exp.Anonymous) -> str:
    """Returns the DuckDB SQL of a ``window()`` that ``time_windows.py`` has rewritten."""
    time, *numbers = call.expressions
    if len(numbers) != 2 or any(text.is_string for text in numbers):
        raise StatementRefused("window() stands in a SELECT or in its GROUP BY.")
    size, first = (writer.text(number) for number in numbers)
    return f"inner_window(spark_timestamp({writer.text(time)}), {size}, {first})"


SPECIAL: Final[dict[str, Callable[[Generator, exp.Anonymous], str | None]]] = {
    "window": _window,
    "make_dt_interval": _day_time_interval,
    "datediff": _difference,
    "date_diff": _difference,
    "timestampdiff": _difference,
    "date_add": _addition,
    "dateadd": _addition,
    "timestampadd": _addition,
    "date_part": _date_part,
    "datepart": _date_part,
    "date_format": _date_format,
    "from_unixtime": _from_unixtime,
    "to_date": _parsed,
    "to_timestamp": _parsed,
    "try_to_timestamp": _parsed,
    "unix_timestamp": _parsed,
    "to_unix_timestamp": _parsed,
}
