"""Rewrites syntax that generates rows, such as explode() and LATERAL VIEW, in the syntax tree. The
replacements are in DuckDB's SQL; json_tuple() becomes calls of get_json_object()."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from mltables.dialect import allowed_syntax, json_schemas
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.syntax_nodes import find_all
from mltables.table_definitions import TABLES
from mltables.views import VIEWS

_MAPS: Final = frozenset(
    [
        "map",
        "map_filter",
        "transform_values",
        "transform_keys",
        "map_from_entries",
        "map_from_arrays",
        "map_concat",
        "str_to_map",
    ]
)
_GENERATORS: Final = frozenset(
    (
        *("explode", "explode_outer", "posexplode", "posexplode_outer"),
        *("inline", "inline_outer", "variant_explode"),
        *("stack", "json_tuple"),
    )
)
_OF_STRUCTS: Final = frozenset(("inline", "inline_outer", "variant_explode"))
"""Generators whose columns are the fields of structs."""
_MAP_COLUMNS: Final = frozenset(
    name
    for columns in (
        *([column[:2] for column in table.columns] for table in TABLES),
        *(view.columns.items() for view in VIEWS.values()),
    )
    for name, kind in columns
    if kind.startswith("MAP(")
)
_NESTED_COLUMNS: Final = frozenset(
    name
    for columns in (
        *([column[:2] for column in table.columns] for table in TABLES),
        *(view.columns.items() for view in VIEWS.values()),
    )
    for name, kind in columns
    if kind.startswith(("MAP(", "STRUCT(")) or kind.endswith("[]")
)
_MAKE_NESTED: Final = frozenset(("array", "arrays_zip", "struct", "named_struct", *_MAPS))

_MOST_ROWS: Final = 1000
"""Most rows that a call of stack() makes."""
_MOST_KEYS: Final = 50
_KEY: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
EXPLODED: Final = "unnest({0})"
"""The template of explode() of a list."""


class Duck(exp.Expression):
    """A syntax tree node that the SQL generator writes by a template of DuckDB SQL. In the template
    ``{0}`` stands for the first of the node's ``expressions``, ``{1}`` for the second."""

    arg_types = {"this": True, "expressions": False}  # noqa: RUF012 -- as sqlglot has it


def rewrite(query: exp.Query) -> None:
    """Replaces the generators (such as ``explode()``) and LATERAL VIEWs of a query, in place."""
    allowed_syntax.check_copies(
        (len(call.expressions), call.expressions[0])
        for call in find_all(query, exp.Anonymous)
        if call.name.lower() == "json_tuple" and call.expressions
    )
    for select in list(find_all(query, exp.Select)):
        _views(select)
        _joins(select)
        _generators_of(select)


def is_generator(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _GENERATORS


def names_of(call: exp.Anonymous) -> list[str]:
    """Returns the names that the result columns of a generator function (such as ``explode()``)
    have without an alias; none for ``inline()``, whose columns are the fields of the structs."""
    name = call.name.lower()
    if name in _OF_STRUCTS:
        return []
    if name == "stack":
        return [f"col{place}" for place in range(_width(call))]
    if name == "json_tuple":
        return [f"c{place}" for place in range(len(call.expressions) - 1)]
    names = ["key", "value"] if is_map(call.expressions[0]) else ["col"]
    return ["pos", *names] if name.startswith("pos") else names


def is_map(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column):
        return node.name.lower() in _MAP_COLUMNS
    if not isinstance(node, exp.Anonymous):
        return False
    if node.name.lower() == "from_json":
        return bool(json_schemas.schema_of(node).is_type(exp.DType.MAP))
    return node.name.lower() in _MAPS


def may_be_nested(node: exp.Expr) -> bool:
    """Whether a column or a call in a SQL statement has the name of a known column, or of one of
    some functions, whose values are lists, maps or structs."""
    if isinstance(node, exp.Column):
        return node.name.lower() in _NESTED_COLUMNS
    return isinstance(node, exp.Anonymous) and node.name.lower() in _MAKE_NESTED


def _made(call: exp.Anonymous, named: int) -> list[exp.Expr]:
    """Returns the columns of a generator as expressions for a SELECT list.

    Args:
        named: how many names the query gives.
    """
    if call.name.lower() == "stack":
        return _stacked(call)
    if call.name.lower() == "json_tuple":
        return _members_of_json(call)
    if len(call.expressions) != 1:
        raise StatementRefused(f"{call.name}() takes one argument.")
    name, (value,) = call.name.lower(), call.expressions
    counted = name.startswith("pos")
    mapped = is_map(value) or named == (3 if counted else 2)
    if name.endswith("_outer") and (mapped or name.startswith("inline")):
        raise StatementRefused(f"{call.name}() takes a list here; LATERAL VIEW OUTER takes all.")
    if name in _OF_STRUCTS:
        items = "inner_variant_items({0})" if name == "variant_explode" else "{0}"
        return [Duck(this=f"unnest({items}, max_depth := 2)", expressions=[value])]
    if mapped:
        sources = ["map_keys({0})", "map_values({0})"]
    elif name.endswith("_outer"):
        sources = ["CASE WHEN len({0}) > 0 THEN {0} ELSE [NULL] END"]
    else:
        sources = ["{0}"]
    made = [f"unnest({source})" for source in sources]
    if counted:
        # posexplode_outer() gives a row without a position for an empty list.
        places = (
            f"list_transform(range(len({sources[0]})), lambda inner_i: CAST(inner_i AS INTEGER))"
        )
        if name.endswith("_outer"):
            places = f"CASE WHEN len({{0}}) > 0 THEN {places} ELSE [NULL] END"
        made.insert(0, f"unnest({places})")
    return [Duck(this=template, expressions=[value.copy()]) for template in made]


def _width(call: exp.Anonymous) -> int:
    """Returns the number of columns of ``stack(rows, a, b, …)``."""
    rows, *values = call.expressions or [exp.Null()]
    count = int(rows.name) if isinstance(rows, exp.Literal) and rows.is_int else 0
    if not 0 < count <= _MOST_ROWS or not values:
        raise StatementRefused(f"stack() takes a number from 1 to {_MOST_ROWS}, and values.")
    return -(-len(values) // count)


def _stacked(call: exp.Anonymous) -> list[exp.Expr]:
    """Returns the columns of ``stack(2, a, b, c, d)``, whose rows are (a, b) and (c, d)."""
    width, values = _width(call), call.expressions[1:]
    missing = width * int(call.expressions[0].name) - len(values)
    values = [*values, *(exp.Null() for _ in range(missing))]
    return [
        Duck(
            this=f"unnest([{', '.join(f'{{{place}}}' for place in range(len(members)))}])",
            expressions=[member.copy() for member in members],
        )
        for members in (values[column::width] for column in range(width))
    ]


def _members_of_json(call: exp.Anonymous) -> list[exp.Expr]:
    """Returns the columns of ``json_tuple(text, 'a', 'b')``."""
    text, *keys = call.expressions or [exp.Null()]
    if not 0 < len(keys) <= _MOST_KEYS or not all(
        isinstance(key, exp.Literal) and key.is_string and _KEY.fullmatch(key.name) for key in keys
    ):
        raise StatementRefused(
            f"json_tuple() takes a text and up to {_MOST_KEYS} keys that are written as texts here."
        )
    return [
        exp.Anonymous(
            this="get_json_object", expressions=[text.copy(), exp.Literal.string(f"$.{key.name}")]
        )
        for key in keys
    ]


def _generators_of(select: exp.Select) -> None:
    projections: list[exp.Expr] = []
    count = 0
    for expression in select.expressions:
        call = expression.this if isinstance(expression, exp.Alias | exp.Aliases) else expression
        if not is_generator(call):
            if isinstance(expression, exp.Aliases):
                raise StatementRefused(
                    "Several names in parentheses follow explode() and its like."
                )
            projections.append(expression)
            continue
        count += 1
        if isinstance(expression, exp.Aliases):
            names = [name.name for name in expression.expressions]
        else:
            names = [expression.alias] if isinstance(expression, exp.Alias) else []
        made = _made(call, len(names))
        names = names or names_of(call)
        if call.name.lower() == "variant_explode":
            raise StatementRefused("variant_explode() follows LATERAL.")
        if call.name.lower() in _OF_STRUCTS:
            if isinstance(expression, exp.Alias | exp.Aliases):
                raise StatementRefused(f"Name the columns of {call.name}() in LATERAL VIEW.")
            projections += made
            continue
        if len(names) != len(made):
            raise StatementRefused(
                f"{call.name}() makes {len(made)} columns here, not {len(names)}."
            )
        projections += [
            exp.alias_(value, name, quoted=True) for value, name in zip(made, names, strict=True)
        ]
    if count > 1:
        raise StatementRefused(
            "A SELECT has at most one explode() or posexplode(): use LATERAL VIEW."
        )
    if count:
        select.set("expressions", projections)


def _lateral(lateral: exp.Lateral, position: int) -> exp.Join:
    """Returns ``CROSS JOIN LATERAL (SELECT unnest(…)) AS t(a, b)`` for a LATERAL VIEW."""
    call = lateral.this
    if not is_generator(call):
        raise StatementRefused(
            "LATERAL takes explode(), posexplode(), inline(), stack(), json_tuple() or "
            "variant_explode()."
        )
    alias = lateral.args.get("alias")
    names = [column.name for column in alias.columns] if alias else []
    made = _made(call, len(names))
    names = names or names_of(call)
    inline = call.name.lower() in _OF_STRUCTS
    if not inline and len(names) != len(made):
        raise StatementRefused(f"{call.name}() makes {len(made)} columns here, not {len(names)}.")
    table = exp.TableAlias(
        this=exp.to_identifier((alias.name if alias else "") or f"inner_lateral_{position}"),
        columns=[exp.to_identifier(name, quoted=True) for name in names],
    )
    if not inline:
        made = [exp.alias_(value, f"c{number}", quoted=True) for number, value in enumerate(made)]
    made_of = exp.Subquery(this=exp.Select(expressions=made))
    joined = exp.Lateral(this=made_of, alias=table)
    if lateral.args.get("outer"):
        return exp.Join(this=joined, side="LEFT", on=exp.true())
    return exp.Join(this=joined, kind="CROSS")


def _views(select: exp.Select) -> None:
    laterals = select.args.get("laterals") or []
    joins = [_lateral(lateral, position) for position, lateral in enumerate(laterals)]
    if joins:
        select.set("laterals", None)
        select.set("joins", [*(select.args.get("joins") or []), *joins])


def _joins(select: exp.Select) -> None:
    for position, join in enumerate(select.args.get("joins") or []):
        lateral = join.this
        if isinstance(lateral, exp.Lateral) and not isinstance(lateral.this, exp.Subquery):
            made = _lateral(lateral, position + 1000)
            if join.side == "LEFT":
                join.set("on", exp.true())
            join.set("this", made.this)
