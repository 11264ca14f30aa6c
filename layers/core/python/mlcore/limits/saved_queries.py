"""Rules about the name, the size and the typed parameters of a saved SQL query."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

from mlcore.entities.saved_queries import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    QueryParameter,
    Value,
)
from mlcore.errors import InvalidParameterValue
from mlcore.limits.shared_checks import check_text

MAX_SQL_BYTES: Final = 100_000
MAX_DESCRIPTION_LENGTH: Final = 2_000
MAX_PARAMETERS: Final = 50
MAX_TEXT_LENGTH: Final = 1_000
"""Characters of a value of type text."""

_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,99}")
_PARAMETER: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_UNFINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_MOST_CHARACTERS_OF_NUMBER: Final = 40


def check_name(name: str) -> None:
    """Raises InvalidParameterValue unless a saved SQL query may have this name."""
    if not _NAME.fullmatch(name):
        raise InvalidParameterValue(
            "The name of a saved query has 1 to 100 characters: letters (a to z), digits, '_', "
            "'-' and '.', and begins with a letter or digit."
        )


def check_sql(sql: str) -> None:
    if not sql.strip():
        raise InvalidParameterValue("Parameter 'sql' must not be empty.")
    if "\x00" in sql:
        raise InvalidParameterValue("'sql' cannot contain NUL (0x00) characters")
    if len(sql.encode()) > MAX_SQL_BYTES:
        raise InvalidParameterValue(f"A saved query has at most {MAX_SQL_BYTES} bytes of SQL.")


def check_description(description: str) -> None:
    check_text("description", MAX_DESCRIPTION_LENGTH, description)


def declared_parameters(sent: Any) -> tuple[QueryParameter, ...]:
    """Returns the parameters that a request declares for a saved SQL query: objects with ``name``,
    ``type`` and, if a run of the query may omit them, ``default``. Raises InvalidParameterValue."""
    if not isinstance(sent, list) or len(sent) > MAX_PARAMETERS:
        raise InvalidParameterValue(
            f"Parameter 'parameters' must be a list of at most {MAX_PARAMETERS} objects with "
            "'name', 'type' and 'default'."
        )
    parameters = tuple(_declared(fields) for fields in sent)
    names = [parameter.name for parameter in parameters]
    if len(set(names)) < len(names):
        raise InvalidParameterValue("Each parameter of a saved query has a name of its own.")
    return parameters


def _declared(sent: Any) -> QueryParameter:
    if not isinstance(sent, dict) or sent.keys() - {"name", "type", "default"}:
        raise InvalidParameterValue(
            "A parameter of a saved query is an object with 'name', 'type' and 'default'."
        )
    name, kind = sent.get("name"), sent.get("type")
    if not isinstance(name, str) or not _PARAMETER.fullmatch(name):
        raise InvalidParameterValue(
            "The name of a parameter has 1 to 64 letters, digits and '_', and begins with no digit."
        )
    if not isinstance(kind, str) or kind not in _CONVERTERS:
        raise InvalidParameterValue(
            f"The type of parameter {name!r} must be one of: {', '.join(_CONVERTERS)}."
        )
    parameter = QueryParameter(name, kind)
    if "default" not in sent:
        return parameter
    return parameter._replace(has_default=True, default=value_of(parameter, sent["default"]))


def values_of(parameters: Sequence[QueryParameter], sent: Mapping[str, Any]) -> dict[str, Value]:
    """Returns, by name, the value of every parameter of a saved SQL query for one execution,
    converted to the parameter's type.

    Args:
        sent: values by name, as JSON or as texts, such as those of a command line.

    Raises:
        InvalidParameterValue: a value does not have its parameter's type, one without a default is
            missing, or the query has no parameter of a sent name.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    unknown = sorted(sent.keys() - by_name.keys())
    if unknown:
        declared = ", ".join(sorted(by_name)) or "none"
        raise InvalidParameterValue(
            f"The query has no parameter {unknown[0][:64]!r}. Its parameters: {declared}."
        )
    return {
        name: value_of(parameter, sent[name]) if name in sent else _default(parameter)
        for name, parameter in by_name.items()
    }


def _default(parameter: QueryParameter) -> Value:
    if not parameter.has_default:
        raise InvalidParameterValue(
            f"The parameter {parameter.name!r} ({parameter.kind}) has no value."
        )
    return parameter.default


def value_of(parameter: QueryParameter, sent: Any) -> Value:
    """Converts a value in a request to the type of a saved SQL query's parameter, and returns it;
    None for null. A text that spells a value of the type is accepted, too. Raises
    InvalidParameterValue for any other value."""
    if sent is None:
        return None
    convert, expected = _CONVERTERS[parameter.kind]
    try:
        return convert(sent)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameterValue(
            f"The value of parameter {parameter.name!r} must be {expected}."
        ) from None


def _text(sent: Any) -> str:
    if not isinstance(sent, str) or "\x00" in sent or len(sent) > MAX_TEXT_LENGTH:
        raise ValueError
    sent.encode()  # raises UnicodeEncodeError, a ValueError, for unpaired surrogates
    return sent


def _integer(sent: Any) -> int:
    if isinstance(sent, bool) or not isinstance(sent, int | str):
        raise TypeError
    if isinstance(sent, str) and not _INTEGER.fullmatch(sent):
        raise ValueError
    value = int(sent)
    if not -(2**63) <= value < 2**63:
        raise OverflowError
    return value


def _number(sent: Any) -> float:
    if isinstance(sent, bool) or not isinstance(sent, int | float | str):
        raise TypeError
    if isinstance(sent, str):
        if sent in _UNFINITE:
            return _UNFINITE[sent]
        if len(sent) > _MOST_CHARACTERS_OF_NUMBER or not _NUMBER.fullmatch(sent):
            raise ValueError
    return float(sent)


def _boolean(sent: Any) -> bool:
    if isinstance(sent, bool):
        return sent
    if not isinstance(sent, str) or sent.lower() not in ("true", "false"):
        raise ValueError
    return sent.lower() == "true"


def _date(sent: Any) -> str:
    if not _DATE.fullmatch(sent):
        raise ValueError
    return date.fromisoformat(sent).isoformat()


def _timestamp(sent: Any) -> str:
    if not _TIMESTAMP.fullmatch(sent):
        raise ValueError
    moment = datetime.fromisoformat(sent)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(sep=" ")


_CONVERTERS: Final[Mapping[str, tuple[Callable[[Any], Value], str]]] = {
    TEXT: (_text, f"a text of at most {MAX_TEXT_LENGTH} characters"),
    INTEGER: (_integer, "an integer from -2^63 to 2^63-1"),
    NUMBER: (_number, 'a number, "NaN", "Infinity" or "-Infinity"'),
    BOOLEAN: (_boolean, "true or false"),
    DATE: (_date, "a day such as 2026-01-31"),
    TIMESTAMP: (_timestamp, "a time such as 2026-01-31T12:00:00Z, or a day"),
}
