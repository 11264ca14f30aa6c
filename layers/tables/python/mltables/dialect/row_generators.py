"""Rewrites syntax that generates rows and columns, such as explode(), LATERAL VIEW and PIVOT, in
the syntax tree. The replacements are in DuckDB's SQL."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from mltables.dialect.column_names import databricks_name
from mltables.dialect.refusal import StatementRefused
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
    ]
)
_GENERATORS: Final = frozenset(
    ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer")
)
_COLUMNS: Final = {
    **{table.name: [name for name, *_ in table.columns] for table in TABLES},
    **{name: list(view.columns) for name, view in VIEWS.items()},
}
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
_MAKE_NESTED: Final = frozenset(("array", "struct", "named_struct", *_MAPS))

EXPLODED: Final = "unnest({0})"
"""The template of explode() of a list."""


class Duck(exp.Expression):
    """A syntax tree node that the SQL generator writes by a template of DuckDB SQL. In the template
    ``{0}`` stands for the first of the node's ``expressions``, ``{1}`` for the second."""

    arg_types = {"this": True, "expressions": False}  # noqa: RUF012 -- as sqlglot has it


def rewrite(query: exp.Query) -> None:
    """Replaces the generators (such as ``explode()``), LATERAL VIEWs and PIVOTs of a query by
    DuckDB's SQL, in place."""
    for select in list(query.find_all(exp.Select)):
        _views(select)
        _joins(select)
        _generators_of(select)
    for pivot in list(query.find_all(exp.Pivot)):
        _pivot(pivot)


def is_generator(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in _GENERATORS


def names_of(call: exp.Anonymous) -> list[str]:
    """Returns the names that the result columns of a generator function (such as ``explode()``)
    have without an alias; none for ``inline()``, whose columns are the fields of the structs."""
    name = call.name.lower()
    if name.startswith("inline"):
        return []
    names = ["key", "value"] if is_map(call.expressions[0]) else ["col"]
    return ["pos", *names] if name.startswith("pos") else names


def is_map(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column):
        return node.name.lower() in _MAP_COLUMNS
    return isinstance(node, exp.Anonymous) and node.name.lower() in _MAPS


def may_be_nested(node: exp.Expr) -> bool:
    """Whether a column or a call may return a list, map or struct: whether its name is one of the
    known nested columns or of the functions that make such values."""
    if isinstance(node, exp.Column):
        return node.name.lower() in _NESTED_COLUMNS
    return isinstance(node, exp.Anonymous) and node.name.lower() in _MAKE_NESTED


def _made(call: exp.Anonymous, named: int) -> list[exp.Expr]:
    """Returns the columns of a generator as expressions for a SELECT list.

    Args:
        named: how many names the query gives.
    """
    if len(call.expressions) != 1:
        raise StatementRefused(f"{call.name}() takes one argument.")
    name, (value,) = call.name.lower(), call.expressions
    counted = name.startswith("pos")
    mapped = is_map(value) or named == (3 if counted else 2)
    if name.endswith("_outer") and (mapped or name.startswith("inline")):
        raise StatementRefused(f"{call.name}() takes a list here; LATERAL VIEW OUTER takes all.")
    if name.startswith("inline"):
        return [Duck(this="unnest({0}, max_depth := 2)", expressions=[value])]
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
        if call.name.lower().startswith("inline"):
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
        raise StatementRefused("LATERAL takes explode(), posexplode() or inline() here.")
    alias = lateral.args.get("alias")
    names = [column.name for column in alias.columns] if alias else []
    made = _made(call, len(names))
    names = names or names_of(call)
    inline = call.name.lower().startswith("inline")
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


def _output(select: exp.Expr) -> list[str] | None:
    """Returns the column names of a query; None if some have no explicit name."""
    if isinstance(select, exp.Subquery):
        return _output(select.this)
    if isinstance(select, exp.SetOperation):
        return _output(select.left)
    if not isinstance(select, exp.Select):
        return None
    names = []
    for expression in select.expressions:
        if not expression.alias_or_name or expression.is_star:
            return None
        names.append(expression.alias_or_name)
    return names


def _pivot(pivot: exp.Pivot) -> None:
    source = pivot.parent
    if pivot.args.get("unpivot") or source is None or len(source.args.get("pivots") or []) != 1:
        raise StatementRefused("Not allowed: UNPIVOT.")
    if isinstance(source, exp.Table):
        columns = _COLUMNS.get(source.name.lower())
        if source.args.get("db") is None and columns is not None and _is_named_query(source):
            columns = None
    else:
        columns = _output(source)
    fields = pivot.args.get("fields") or []
    if columns is None or len(fields) != 1 or not isinstance(fields[0].this, exp.Column):
        raise StatementRefused(
            "PIVOT needs a subquery that names its columns, and FOR one column: "
            "FROM (SELECT a, b, c FROM …) PIVOT (sum(c) FOR b IN ('x', 'y'))."
        )
    column, members = fields[0].this, fields[0].expressions
    used = {
        used_column.name.lower()
        for part in pivot.expressions
        for used_column in part.find_all(exp.Column)
    }
    used.add(column.name.lower())
    groups = [exp.column(name, quoted=True) for name in columns if name.lower() not in used]
    projections: list[exp.Expr] = list(groups)
    several = len(pivot.expressions) > 1
    for member in members:
        value = member.this if isinstance(member, exp.PivotAlias | exp.Alias) else member
        shown = member.alias or value.name or value.sql("databricks")
        for part in pivot.expressions:
            call = part.this if isinstance(part, exp.Alias) else part
            name = f"{shown}_{part.alias or databricks_name(call)}" if several else shown
            projections.append(exp.alias_(_cell(call, column, value), name, quoted=True))
    inner = source.copy()
    inner.set("pivots", None)
    made = exp.Select(expressions=projections).from_(inner)
    if groups:
        made = made.group_by(*(group.copy() for group in groups))
    alias = pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("inner_pivot"))
    source.replace(exp.Subquery(this=made, alias=alias.copy()))


def _cell(call: exp.Expr, column: exp.Column, value: exp.Expr) -> exp.Expr:
    """Returns the expression of one column of a PIVOT: the aggregate of the rows with this value;
    NULL, even for a count, if there are no such rows."""
    chosen = exp.Where(this=exp.NullSafeEQ(this=column.copy(), expression=value.copy()))
    rows = exp.Filter(
        this=exp.Anonymous(this="count", expressions=[exp.Star()]), expression=chosen.copy()
    )
    return exp.Case(
        ifs=[
            exp.If(
                this=exp.GT(this=rows, expression=exp.Literal.number(0)),
                true=exp.Filter(this=call.copy(), expression=chosen),
            )
        ]
    )


def _is_named_query(table: exp.Table) -> bool:
    """Whether a table node refers to a common table expression."""
    root = table.root()
    return any(
        named_query.alias.lower() == table.name.lower() for named_query in root.find_all(exp.CTE)
    )
