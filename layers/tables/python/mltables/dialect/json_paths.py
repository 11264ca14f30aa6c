"""Rewrites paths into JSON: ``request:messages[0].content``, and ``variant_get()``.

Databricks reads such a path from a text with JSON or from a VARIANT. Here a text with JSON stands
for both, so a path is ``get_json_object()``. The attributes of spans, events and links are VARIANT
in Databricks and maps of texts here: the first key of a path into ``attributes`` is a key of the
map.
"""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp, jsonpath
from sqlglot.errors import SqlglotError

from mltables.dialect import allowed_syntax
from mltables.dialect.parser import Reader
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.syntax_nodes import find_all
from mltables.table_definitions import TABLES
from mltables.views import VIEWS

MAP: Final = "attributes"
"""Columns and fields of this name are a VARIANT in Databricks and a map of texts here."""
_OTHER_MAPS: Final = frozenset(
    name
    for columns in (
        *([(name, kind) for name, kind, *_ in table.columns] for table in TABLES),
        *(view.columns.items() for view in VIEWS.values()),
    )
    for name, kind in columns
    if kind.startswith("MAP(") and name != MAP
)

_CALLS: Final = {"variant_get": exp.Cast, "try_variant_get": exp.TryCast}
_PARSERS: Final = frozenset(("parse_json", "try_parse_json"))
_REFUSED: Final = "A path in JSON is like a:b[0].c here."


def rewrite(query: exp.Query) -> None:
    """Replaces the JSON paths (``column:path``) of a SQL query by ``get_json_object()`` and map
    lookups, in place. Raises StatementRefused for a path with a wildcard, for a path into a map
    other than ``attributes``, and for the operator ``->``."""
    for path in find_all(query, exp.JSONExtract):
        # The parser also accepts the operator -> of other databases, with any value on its right.
        if not path.args.get("variant_extract") or not isinstance(path.expression, exp.JSONPath):
            raise StatementRefused("Not allowed: the operator ->.")
    for select in find_all(query, exp.Select):
        _name_projections(select)
    for cast in find_all(query, exp.Cast):
        _replace_cast(cast)
    # Inner paths first: a:b:c is a path into a:b.
    for node in reversed(list(find_all(query, exp.JSONExtract, exp.Anonymous))):
        if isinstance(node, exp.JSONExtract):
            steps = _steps(node.expression)
            node.replace(_lookup(node.this.pop(), steps))
        elif isinstance(node, exp.Anonymous) and node.name.lower() in _CALLS:
            _replace_call(node)


def _replace_cast(cast: exp.Cast) -> None:
    """Replaces the cast of a VARIANT to a list or map of VARIANTs or texts by ``from_json()``."""
    kind, value = cast.to, cast.this
    members = kind.expressions[-1:] if kind.is_type(exp.DType.ARRAY, exp.DType.MAP) else []
    is_variant = isinstance(value, exp.JSONExtract) or (
        isinstance(value, exp.Anonymous) and value.name.lower() in {*_PARSERS, *_CALLS}
    )
    if is_variant and members and members[0].is_type(exp.DType.VARIANT, exp.DType.TEXT):
        schema = exp.Literal.string(kind.sql("databricks"))
        cast.replace(exp.Anonymous(this="from_json", expressions=[value.pop(), schema]))


def _name_projections(select: exp.Select) -> None:
    """Names projections as in Databricks: ``request:a.b::INT`` is the column ``b``."""
    for position, projection in enumerate(select.expressions):
        inner = projection
        while isinstance(inner, exp.Cast):
            inner = inner.this
        if isinstance(inner, exp.JSONExtract):
            last = inner.expression.expressions[-1]  # there is a root at least
            if isinstance(last, exp.JSONPathKey) and isinstance(last.this, str):
                name = exp.to_identifier(last.this, quoted=True)
                select.expressions[position] = exp.alias_(projection, name, copy=False)
    select.set("expressions", select.expressions)


def _replace_call(call: exp.Anonymous) -> None:
    """Replaces ``variant_get(value, path, type)``."""
    count = len(call.expressions)
    texts = call.expressions[1:]
    if count not in (2, 3) or not all(isinstance(t, exp.Literal) and t.is_string for t in texts):
        raise StatementRefused(f"{call.name.lower()}() takes a value, a path and a type as texts.")
    path, *kinds = (str(text.this) for text in texts)
    try:
        steps = _steps(jsonpath.parse(path))
        lookup = _lookup(call.expressions[0].pop(), steps)
        for kind in kinds:
            cast = _CALLS[call.name.lower()]
            to = exp.DataType.build(kind, dialect=Reader)
            allowed_syntax.check(to)
            lookup = cast(this=lookup, to=to)
            lookup.meta["written"] = True
    except (SqlglotError, IndexError, ValueError) as error:  # the parser raises all of them
        raise StatementRefused(_REFUSED) from error
    call.replace(lookup)


def _steps(path: exp.Expr) -> list[str | int]:
    steps: list[str | int] = []
    for part in path.expressions:
        if isinstance(part, exp.JSONPathRoot):
            continue
        step: Any = part.this
        is_key = isinstance(part, exp.JSONPathKey) and isinstance(step, str) and '"' not in step
        if not (is_key or (isinstance(part, exp.JSONPathSubscript) and isinstance(step, int))):
            raise StatementRefused(_REFUSED)
        steps.append(step)
    return steps


def _lookup(value: exp.Expr, steps: list[str | int]) -> exp.Expr:
    """Returns the expression that looks a path up in a value. The value's node becomes a part of
    it."""
    if isinstance(value, exp.Anonymous) and value.name.lower() in _PARSERS:
        if len(value.expressions) != 1:
            raise StatementRefused(f"{value.name.lower()}() takes one text.")
        value = value.expressions[0].pop()
    name = _name(value)
    if name in _OTHER_MAPS:
        raise StatementRefused(
            f"{name} is a map: use {name}['key'], or get_json_object() for a text with JSON."
        )
    if name == MAP and steps and isinstance(steps[0], str):
        value = exp.Bracket(this=value, expressions=[exp.Literal.string(steps[0])])
        steps = steps[1:]
    if not steps:
        return value
    path = "$" + "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in steps)
    return exp.Anonymous(this="get_json_object", expressions=[value, exp.Literal.string(path)])


def _name(value: exp.Expr) -> str:
    """Returns the name of a column or field in lower case; empty for any other value."""
    if isinstance(value, exp.Dot):
        value = value.expression
    return value.name.lower() if isinstance(value, exp.Column | exp.Identifier) else ""
