"""Translates ``from_json(text, schema)``: the values of a text with JSON, by a written schema.

A value that does not have the wanted type is NULL, as in Databricks: a text is no number, a
fraction is no integer, a number outside its type's range is no value. A list or map with such a
value is NULL as a whole. A text that is no JSON has only NULLs. VARIANT stands for a text with
JSON, as in ``dialect/json_paths.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mltables.dialect.parser import Reader
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.text_functions import literal, quoted

if TYPE_CHECKING:
    from mltables.dialect.sql_generator import Generator

_DIGITS: Final = 38
"""Most digits of a DECIMAL, in Databricks and in DuckDB."""
_DEEPEST: Final = 8
_MOST: Final = 200
"""Most fields of a schema."""
_NESTED: Final = re.compile(r"\s*(ARRAY|MAP|STRUCT)\s*<", re.IGNORECASE)
_QUOTED: Final = re.compile(r"`[^`]*`")
_NAME: Final = re.compile(r"[^\"\\*\x00-\x1f]+")
_SCALARS: Final = {
    exp.DType.TEXT: "inner_json_text({0})",
    exp.DType.VARIANT: "inner_json_text({0})",
    exp.DType.BOOLEAN: "inner_json_boolean({0})",
    exp.DType.INT: "TRY_CAST(inner_json_integer({0}) AS INTEGER)",
    exp.DType.BIGINT: "TRY_CAST(inner_json_integer({0}) AS BIGINT)",
    exp.DType.FLOAT: "CAST(inner_json_double({0}) AS FLOAT)",
    exp.DType.DOUBLE: "inner_json_double({0})",
    exp.DType.DATE: "inner_json_date({0})",
    exp.DType.TIMESTAMPTZ: "inner_json_time({0})",
}
"""Templates of DuckDB's SQL by type; ``{0}`` is a value of DuckDB's type JSON, or NULL."""


def from_json(writer: Generator, call: exp.Anonymous) -> str:
    """Returns the DuckDB SQL of ``from_json(text, schema)``. Raises StatementRefused if the schema
    is no text literal, has a type that is not supported, or if options are given."""
    writer.count(call, 2, 2)
    kind = schema_of(call)
    text = writer.text(call.expressions[0])
    if kind.is_type(exp.DType.STRUCT):
        made = _Schema().value(kind, "inner_j0", 0)
        return (
            f"list_transform([inner_json_source({text})], lambda inner_t: CASE WHEN trim(inner_t) "
            "<> '' THEN list_transform([inner_json_root(inner_t)], "
            f"lambda inner_j0: {made})[1] END)[1]"
        )
    made = _Schema().value(kind, "inner_j0", 1)
    root = "inner_json_items" if _is_list_of_structs(kind) else "inner_json"
    return f"list_transform([{root}(inner_json_source({text}))], lambda inner_j0: {made})[1]"


def schema_of(call: exp.Anonymous) -> exp.DataType:
    """Returns the SQL type that a call of from_json() returns: a STRUCT, an ARRAY or a MAP. Raises
    StatementRefused if the call's schema is not a text literal that spells such a type."""
    given = call.expressions[1] if len(call.expressions) > 1 else None
    text = literal(given, "The schema of from_json()")
    kind: exp.DataType | None = None
    try:
        if not _NESTED.match(text):
            text = f"STRUCT<{text}>"
        if _is_one_type(text):
            kind = exp.DataType.build(text, dialect=Reader)
    except (SqlglotError, IndexError, ValueError, RecursionError):  # the parser raises all of them
        pass
    if kind is None or not kind.is_type(exp.DType.STRUCT, exp.DType.ARRAY, exp.DType.MAP):
        raise StatementRefused("The schema of from_json() is like 'a INT, b ARRAY<STRING>' here.")
    return kind


def _is_one_type(text: str) -> bool:
    """Whether the first ``<`` of a text is closed at its end, and not before: the parser leaves out
    what follows a type."""
    depth = parentheses = 0
    plain = _QUOTED.sub("", text).rstrip()
    for position, letter in enumerate(plain):
        depth += (letter == "<") - (letter == ">")
        parentheses += (letter == "(") - (letter == ")")
        if parentheses < 0:
            return False
        if letter == ">" and not depth:
            return position == len(plain) - 1
    return False


def _is_list_of_structs(kind: exp.DataType) -> bool:
    return (
        kind.is_type(exp.DType.ARRAY)
        and len(kind.expressions) == 1
        and kind.expressions[0].is_type(exp.DType.STRUCT)
    )


class _Schema:
    """Writes the conversion of a JSON value to a type, and counts the fields of the type."""

    def __init__(self) -> None:
        self._fields = 0

    def value(self, kind: exp.DataType, json: str, depth: int) -> str:
        """Returns the DuckDB SQL that converts the variable ``json``, a JSON value, to a type.

        Args:
            depth: the number of types around this one. Variables of inner values contain it.
        """
        if depth > _DEEPEST:
            raise StatementRefused("The schema of from_json() is nested too deeply.")
        parts = kind.expressions
        inner = f"inner_j{depth + 1}"
        if kind.is_type(exp.DType.STRUCT):
            packed = self._packed(parts, json, depth)
            return (
                packed if not depth else f"CASE WHEN json_type({json}) = 'OBJECT' THEN {packed} END"
            )
        if kind.is_type(exp.DType.ARRAY) and len(parts) == 1:
            members, made = f"json_extract({json}, '$[*]')", "{0}"
        elif kind.is_type(exp.DType.MAP) and len(parts) == 2 and parts[0].is_type(exp.DType.TEXT):
            names = f"json_keys({json})"
            members = f"inner_json_members({json})"
            # A text may have a key twice, of which DuckDB makes no map.
            made = (
                f"CASE WHEN len(list_distinct({names})) = len({names}) THEN map({names}, {{0}}) END"
            )
        else:
            return _scalar(kind).format(json)
        item = self.value(parts[-1], inner, depth + 1)
        all_made = f"inner_m{depth}"
        # One member of another type makes the whole list or map NULL.
        whole = (
            f"list_transform([list_transform({members}, lambda {inner}: {item})], "
            f"lambda {all_made}: CASE WHEN list_count({all_made}) = inner_json_present({members}) "
            f"THEN {made.format(all_made)} END)[1]"
        )
        wanted = "ARRAY" if kind.is_type(exp.DType.ARRAY) else "OBJECT"
        return f"CASE WHEN json_type({json}) = '{wanted}' THEN {whole} END"

    def _packed(self, fields: list[exp.Expr], json: str, depth: int) -> str:
        self._fields += len(fields)
        if not fields:
            raise StatementRefused("A struct has at least one field.")
        if self._fields > _MOST:
            raise StatementRefused(f"The schema of from_json() has at most {_MOST} fields.")
        packed, names = [], set()
        for field in fields:
            name, kind = _field(field)
            if name.lower() in names:
                raise StatementRefused(f"The schema of from_json() has the field {name} twice.")
            names.add(name.lower())
            member = f"json_extract({json}, {quoted(f'$.{chr(34)}{name}{chr(34)}')})"
            if kind.expressions and not kind.is_type(exp.DType.DECIMAL):
                inner = f"inner_j{depth + 1}"
                item = self.value(kind, inner, depth + 1)
                member = f"list_transform([{member}], lambda {inner}: {item})[1]"
            else:
                member = _scalar(kind).format(member)
            packed.append(f"{exp.to_identifier(name, quoted=True).sql('duckdb')} := {member}")
        return f"struct_pack({', '.join(packed)})"


def _field(field: exp.Expr) -> tuple[str, exp.DataType]:
    """Returns the name and the type of a field of a STRUCT."""
    kind = field.args.get("kind")
    plain = isinstance(field, exp.ColumnDef) and not field.args.get("constraints")
    if not plain or not isinstance(kind, exp.DataType) or not _NAME.fullmatch(field.name):
        raise StatementRefused("A field in the schema of from_json() is a name and a type here.")
    return field.name, kind


def _scalar(kind: exp.DataType) -> str:
    """Returns the template that converts a JSON value to a type without parts."""
    if kind.is_type(exp.DType.DECIMAL):
        sizes = [size.name for size in kind.expressions] or ["10", "0"]
        if len(sizes) > 2 or not all(size.isdecimal() for size in sizes):
            raise StatementRefused("The size of a type is a whole number.")
        precision, scale = (*map(int, sizes), 0)[:2]
        if not max(1, scale) <= precision <= _DIGITS:
            raise StatementRefused(f"A DECIMAL has 1 to {_DIGITS} digits, and no larger scale.")
        return f"TRY_CAST(inner_json_decimal({{0}}) AS DECIMAL({', '.join(sizes)}))"
    template = None if kind.expressions else _SCALARS.get(kind.this)
    if template is None:
        raise StatementRefused(f"from_json() cannot make {kind.sql('databricks')} here.")
    return template
