"""Rewrites PIVOT and UNPIVOT in the syntax tree: a PIVOT becomes aggregates with a filter for each
value, an UNPIVOT a list of its columns that is unnested."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from mltables.dialect import allowed_syntax
from mltables.dialect.column_names import databricks_name
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.row_generators import Duck
from mltables.dialect.source_columns import (
    COLUMNS,
    columns_of_cte,
    columns_of_query,
    ctes_named,
)
from mltables.dialect.syntax_nodes import find_all
from mltables.published_names import published_view

_NAME: Final = "inner_c0"
"""The column of an UNPIVOT with the names of the columns; those with the values count from 1."""


def rewrite(query: exp.Query) -> None:
    """Replaces the PIVOTs and UNPIVOTs of a query by DuckDB's SQL, in place. Raises
    StatementRefused if the columns of a source are unknown, and for forms that are not
    supported."""
    for pivot in list(find_all(query, exp.Pivot)):
        source = pivot.parent
        fields = pivot.args.get("fields") or []
        if source is None or len(source.args.get("pivots") or []) != 1 or len(fields) != 1:
            raise StatementRefused("PIVOT and UNPIVOT have one FOR here, and one source.")
        if pivot.args.get("unpivot"):
            made = _unpivoted(pivot, source, fields[0])
        else:
            made = _pivoted(pivot, source, fields[0])
        alias = pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("inner_pivot"))
        source.replace(exp.Subquery(this=made, alias=alias.copy()))


def _columns_of(source: exp.Expr) -> list[str] | None:
    """Returns the names of the columns of a table or subquery; None if they are unknown."""
    if not isinstance(source, exp.Table):
        return columns_of_query(source)
    if not source.db and (named := ctes_named(source)):
        return columns_of_cte(named[0]) if len(named) == 1 else None
    name = source.name.lower()
    view = published_view(source.catalog.lower(), source.db.lower(), name)
    return COLUMNS.get(view or name)


def _without_pivot(source: exp.Expr) -> exp.Expr:
    inner = source.copy()
    inner.set("pivots", None)
    return inner


# ----------------------------------------------------------------------------------- PIVOT


def _pivoted(pivot: exp.Pivot, source: exp.Expr, field: exp.Expr) -> exp.Select:
    columns = _columns_of(source)
    if columns is None or not isinstance(field.this, exp.Column):
        raise StatementRefused(
            "PIVOT needs a subquery that names its columns, and FOR one column: "
            "FROM (SELECT a, b, c FROM …) PIVOT (sum(c) FOR b IN ('x', 'y'))."
        )
    column, members = field.this, field.expressions
    used = {
        used_column.name.lower()
        for part in pivot.expressions
        for used_column in find_all(part, exp.Column)
    }
    used.add(column.name.lower())
    groups = [exp.column(name, quoted=True) for name in columns if name.lower() not in used]
    projections: list[exp.Expr] = list(groups)
    several = len(pivot.expressions) > 1
    allowed_syntax.check_copies(
        [
            *((3 * len(pivot.expressions), member) for member in members),
            *((len(members), part) for part in pivot.expressions),
            (2 * len(members) * len(pivot.expressions), column),
        ]
    )
    for member in members:
        value = member.this if isinstance(member, exp.PivotAlias | exp.Alias) else member
        shown = member.alias or _shown(value)
        for part in pivot.expressions:
            call = part.this if isinstance(part, exp.Alias) else part
            name = f"{shown}_{part.alias or databricks_name(call)}" if several else shown
            projections.append(exp.alias_(_cell(call, column, value), name, quoted=True))
    made = exp.Select(expressions=projections).from_(_without_pivot(source))
    if groups:
        made = made.group_by(*(group.copy() for group in groups))
    return made


def _shown(value: exp.Expr) -> str:
    """Returns the name that Databricks gives to the column of a value."""
    if isinstance(value, exp.Neg):
        return f"-{_shown(value.this)}"
    if isinstance(value, exp.Paren):
        return _shown(value.this)
    if isinstance(value, exp.Boolean | exp.Null):
        return value.sql("databricks").lower()
    return value.name or value.sql("databricks")


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


# --------------------------------------------------------------------------------- UNPIVOT


def _unpivoted(pivot: exp.Pivot, source: exp.Expr, field: exp.Expr) -> exp.Select:
    columns = _columns_of(source)
    if columns is None:
        raise StatementRefused(
            "UNPIVOT needs a table, or a subquery that names its columns: "
            "FROM (SELECT a, b, c FROM …) UNPIVOT (value FOR name IN (b, c))."
        )
    values = _names(pivot.expressions[0]) if len(pivot.expressions) == 1 else []
    names = _names(field.this)
    if not values or len(names) != 1 or not field.expressions:
        raise StatementRefused("UNPIVOT is like (value FOR name IN (a, b)) here.")
    rows = [_row(member, len(values)) for member in field.expressions]
    used = {column.name.lower() for row in rows for column in row[1:]}
    kept = [exp.column(name, quoted=True) for name in columns if name.lower() not in used]
    made = exp.Select(expressions=[*kept, _unnested(rows)]).from_(_without_pivot(source))
    found = [exp.column(f"inner_c{number + 1}", quoted=True) for number in range(len(values))]
    shown = [
        exp.alias_(column.copy(), name, quoted=True)
        for column, name in zip(
            [exp.column(_NAME, quoted=True), *found], [*names, *values], strict=True
        )
    ]
    inner = exp.Subquery(this=made, alias=exp.TableAlias(this=exp.to_identifier("inner_unpivot")))
    outer = exp.Select(expressions=[*(column.copy() for column in kept), *shown]).from_(inner)
    if pivot.args.get("include_nulls"):
        return outer
    return outer.where(
        exp.or_(*(exp.Not(this=exp.Is(this=column, expression=exp.Null())) for column in found))
    )


def _names(target: exp.Expr) -> list[str]:
    """Returns the names of ``value`` or ``(a, b)``; none if it is anything else."""
    target = target.unnest()
    parts = target.expressions if isinstance(target, exp.Tuple) else [target]
    plain = all(
        isinstance(part, exp.Identifier) or (isinstance(part, exp.Column) and not part.table)
        for part in parts
    )
    return [part.name for part in parts] if plain else []


def _row(member: exp.Expr, count: int) -> list[exp.Expr]:
    """Returns what an UNPIVOT makes of a member of its list: the name of the column or columns, and
    the columns."""
    alias = member.args["alias"] if isinstance(member, exp.PivotAlias | exp.Alias) else None
    given = (member.this if alias is not None else member).unnest()
    columns = given.expressions if isinstance(given, exp.Tuple) else [given]
    if len(columns) != count or not all(
        isinstance(column, exp.Column) and not column.is_star for column in columns
    ):
        raise StatementRefused("The list of an UNPIVOT has columns of its source.")
    name = alias.name if alias is not None else "_".join(column.name for column in columns)
    return [exp.Literal.string(name), *(column.copy() for column in columns)]


def _unnested(rows: list[list[exp.Expr]]) -> Duck:
    """Returns the expression that makes one row of each list."""
    made, position = [], 0
    for row in rows:
        places = range(position, position + len(row))
        fields = (f"inner_c{number} := {{{place}}}" for number, place in enumerate(places))
        made.append(f"struct_pack({', '.join(fields)})")
        position += len(row)
    template = f"unnest([{', '.join(made)}], max_depth := 2)"
    return Duck(this=template, expressions=[part for row in rows for part in row])
