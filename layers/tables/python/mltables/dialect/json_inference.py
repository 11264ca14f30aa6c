"""Computes ``schema_of_json()``: the type that Databricks infers from a written text with JSON."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from mltables.dialect.refusal import StatementRefused
from mltables.dialect.text_functions import literal, quoted

if TYPE_CHECKING:
    from mltables.dialect.sql_generator import Generator

_LONGEST: Final = 2**63
_DIGITS: Final = 38
_PLAIN: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NULL: Final = "VOID"
"""The type of null, and of the members of an empty list, until another member has a type."""

Kind = str | dict[str, Any] | list[Any]
"""A type: its name, the types of the fields of a STRUCT by name, or a list with the type of the
members of an ARRAY."""


def schema_of_json(writer: Generator, call: exp.Anonymous) -> str:
    """Returns the type of a text as DuckDB SQL. Raises StatementRefused if the text is not written
    in the statement, or is no JSON."""
    writer.count(call, 1, 1)
    text = literal(call.expressions[0], "The text of schema_of_json()")
    try:
        value = json.loads(text, parse_int=_integer, parse_float=_fraction)
    except (ValueError, RecursionError) as error:
        raise StatementRefused("The text of schema_of_json() is no JSON.") from error
    return quoted(_written(_kind(value)))


class _Named(str):
    """The name of a type, in place of a number that has it."""


def _integer(text: str) -> _Named:
    size = len(text.lstrip("-"))
    if -_LONGEST <= Decimal(text) < _LONGEST:
        return _Named("BIGINT")
    return _Named(f"DECIMAL({size},0)" if size <= _DIGITS else "DOUBLE")


def _fraction(_text: str) -> float:
    return 0.5


def _kind(value: Any) -> Kind:
    if isinstance(value, _Named):
        return str(value)
    if isinstance(value, dict):
        return {name: _kind(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        kind: Kind = _NULL
        for member in value:
            kind = _common(kind, _kind(member))
        return [kind]
    names = {bool: "BOOLEAN", float: "DOUBLE", type(None): _NULL}
    return names.get(type(value), "STRING")


def _common(a: Kind, b: Kind) -> Kind:
    """Returns the type that has the values of two types."""
    if b in (a, _NULL):
        return a
    if a == _NULL:
        return b
    if isinstance(a, dict) and isinstance(b, dict):
        names = sorted({*a, *b})
        return {name: _common(a.get(name, _NULL), b.get(name, _NULL)) for name in names}
    if isinstance(a, list) and isinstance(b, list):
        return [_common(a[0], b[0])]
    numbers = [isinstance(kind, str) and kind[:2] in ("BI", "DO", "DE") for kind in (a, b)]
    if not all(numbers):
        return "STRING"
    if "DOUBLE" in (a, b):
        return "DOUBLE"
    # BIGINT is shorter than every DECIMAL(19,0) to DECIMAL(38,0), which sort as texts.
    return max(str(a), str(b), key=lambda kind: (len(kind), kind))


def _written(kind: Kind) -> str:
    if isinstance(kind, dict):
        fields = (f"{_name(name)}: {_written(of)}" for name, of in kind.items() if _has_values(of))
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(kind, list):
        return f"ARRAY<{_written(kind[0])}>"
    return "STRING" if kind == _NULL else kind


def _has_values(kind: Kind) -> bool:
    """Whether a type can have values: Databricks leaves out structs without fields."""
    if isinstance(kind, list):
        return _has_values(kind[0])
    return not isinstance(kind, dict) or any(map(_has_values, kind.values()))


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"
