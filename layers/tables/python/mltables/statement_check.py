"""Checks a statement in Databricks' dialect and translates it to DuckDB's SQL. Runs nothing.

A statement is refused unless it is a single query of the system tables, or a SHOW or DESCRIBE
statement about them. The SQL for DuckDB is generated from the syntax tree only: comments, hints,
further statements and names of files do not get into it. ``mltables/dialect`` translates functions
and operators.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mltables import (
    aggregated_lists,
    attribute_lookups,
    inlined_ctes,
    left_columns,
    text_lengths,
    time_travel,
    unjoined_lists,
)
from mltables.column_bounds import Bounds
from mltables.column_pruning import Columns, columns_read
from mltables.counted_columns import count_rows
from mltables.counted_lists import count_lists
from mltables.dialect import (
    added_aliases,
    allowed_syntax,
    json_paths,
    lateral_aliases,
    metadata_queries,
    pivots,
    refusal,
    row_generators,
    sql_generator,
    time_windows,
    whole_numbers,
    written_names,
)
from mltables.dialect.parser import Reader
from mltables.dialect.syntax_nodes import find_all
from mltables.exploded_lists import join_lists
from mltables.file_pruning import table_bounds, where_bounds
from mltables.published_names import PublishedSources, published_view
from mltables.table_definitions import TABLES
from mltables.time_travel import AsOf
from mltables.views import VIEWS

StatementRefused = refusal.StatementRefused

LONGEST: Final = 100_000
"""Most characters of a statement."""
SCHEMA: Final = "mlflow"
"""DuckDB's schema with the views. The catalog's name ``system`` is reserved in DuckDB."""

_NAMES: Final = frozenset((*(table.name for table in TABLES), *VIEWS))
_QUALIFIERS: Final = frozenset((("system", "mlflow"), ("", "mlflow"), ("", "")))
_INFORMATION: Final = frozenset(
    (("system", metadata_queries.INFORMATION), ("", metadata_queries.INFORMATION))
)
_CTE: Final = "cte_"


class TranslatedStatement(NamedTuple):
    """A user's SQL statement, translated to DuckDB's SQL, with placeholders written ``$name``."""

    sql: str
    parameters: frozenset[str]
    """The names of the parameters in ``sql``, without those in ``as_of``."""
    reads: Mapping[str, Columns]
    """The columns that the statement reads, by table."""
    bounds: Mapping[str, Bounds]
    """The bounds of the rows that the statement may need, by table, with values still as SQL."""
    as_of: Sequence[AsOf] = ()
    """The times or versions of past tables that the statement reads."""


def translate(
    text: str, casts: Mapping[str, str] = MappingProxyType({}), *, from_maps: bool = False
) -> TranslatedStatement:
    """Checks an SQL statement in Databricks' dialect and translates it for DuckDB. Raises
    StatementRefused if the statement is neither a single query of the system tables nor a SHOW or
    DESCRIBE statement about them, or uses something that is not supported.

    Args:
        casts: the SQL types to which the statement casts parameters, by name.
        from_maps: whether attributes of spans and metadata of traces are read from their maps even
            if they have columns.
    """
    if len(text) > LONGEST:
        raise StatementRefused(f"A statement has at most {LONGEST} characters.")
    try:
        if (answer := metadata_queries.metadata_query(text)) is not None:
            return TranslatedStatement(answer, frozenset(), {}, {})
        query = _parse_query(text)
        written_names.rewrite(query)
        as_of = time_travel.take_past_tables(query)
        allowed_syntax.check(query)
        json_paths.rewrite(query)
        whole_numbers.mark_divisions(query)
        time_windows.rewrite(query)
        added_aliases.name_columns(query)
        row_generators.rewrite(query)
        pivots.rewrite(query)
        _point_to_views(query)
        left_columns.qualify(query, SCHEMA)
        placeholders = frozenset(
            _placeholder(placeholder) for placeholder in find_all(query, exp.Placeholder)
        )
        _cast_parameters(query, casts)
        inlined_ctes.inline(query, SCHEMA)
        count_lists(query)
        from_columns = not from_maps and not attribute_lookups.spells_columns(query)
        if from_columns:
            count_rows(query, SCHEMA)
            attribute_lookups.read_columns(query, SCHEMA)
            text_lengths.read_lengths(query, SCHEMA)
        may_aggregate = from_columns and aggregated_lists.may_aggregate(query)
        join_lists(query, SCHEMA, from_columns=from_columns)
        if may_aggregate:
            aggregated_lists.aggregate_lists(query, SCHEMA)
        bounds = where_bounds(query, SCHEMA)
        if from_columns:
            unjoined_lists.drop_joins(query, SCHEMA)
        reads = columns_read(query, SCHEMA)
        attribute_lookups.point_to_columns(query)
        sql = sql_generator.generate_sql(lateral_aliases.rewrite(query, SCHEMA))
        # Without rewriting, all columns of the views are read.
        bounds = table_bounds(bounds, reads if from_columns else {})
        return TranslatedStatement(sql, placeholders, reads, bounds, as_of)
    except (SqlglotError, IndexError, ValueError) as error:  # the parser raises all of them
        raise StatementRefused(f"Syntax error: {_first_line(error)}") from error
    except RecursionError as error:
        raise StatementRefused("The statement is nested too deeply.") from error


def _parse_query(text: str) -> exp.Query:
    statements = [
        statement for statement in sqlglot.parse(text, read=Reader) if statement is not None
    ]
    if len(statements) != 1:
        raise StatementRefused(f"One SELECT is needed, not {len(statements)} statements.")
    (query,) = statements
    if not isinstance(query, exp.Select | exp.SetOperation):
        raise StatementRefused("Only SELECT is allowed, and SHOW and DESCRIBE of the tables.")
    return query


def _point_to_views(query: exp.Query) -> None:
    """Replaces the names of tables by the names of views, and adds a prefix to the names of common
    table expressions. So a name can only mean a view or something in the statement itself."""
    expressions = {cte.alias.lower() for cte in find_all(query, exp.CTE)}
    qualified: set[tuple[str, str, str]] = set()
    sources = PublishedSources(query)
    for table in list(find_all(query, exp.Table)):
        if not isinstance(table.this, exp.Identifier):
            raise StatementRefused("Table functions are not allowed.")
        name = table.name.lower()
        qualifier = table.catalog.lower(), table.db.lower()
        alias = table.alias or table.name
        is_expression = qualifier == ("", "") and name in expressions
        published = None if is_expression else published_view(*qualifier, name)
        if published is not None:
            qualified |= {(*qualifier, name), ("", qualifier[1], name)}
            name, qualifier = sources.fastest(published), ("system", SCHEMA)
        is_table = not is_expression and name in _NAMES and qualifier in _QUALIFIERS
        if time_travel.is_past(table) and not is_table:
            raise StatementRefused("AS OF is for the system tables.")
        if is_expression:
            target = exp.to_identifier(_CTE + name, quoted=True)
            table.set("this", target)
        elif is_table:
            view = time_travel.view_name(table, name)
            table.set("this", exp.to_identifier(view, quoted=True))
            table.set("db", exp.to_identifier(SCHEMA, quoted=True))
            table.set("catalog", None)
        elif (
            qualifier in _INFORMATION
            and (subquery := metadata_queries.information_schema_table(name)) is not None
        ):
            subquery.set("alias", table.args.get("alias") or exp.TableAlias(this=table.this.copy()))
            subquery.set("joins", table.args.get("joins"))
            table.replace(subquery)
            continue
        else:
            shown = ".".join(part for part in (table.catalog, table.db, table.name) if part)
            raise metadata_queries.unknown_table(shown)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    for cte in find_all(query, exp.CTE):
        cte.args["alias"].set("this", exp.to_identifier(_CTE + cte.alias.lower(), quoted=True))
    _drop_qualifiers(query, qualified)


def _drop_qualifiers(query: exp.Query, published: Collection[tuple[str, str, str]]) -> None:
    """Removes catalog and schema from names of columns, such as
    ``system.mlflow.runs_latest.run_id``.

    Args:
        published: (catalog, schema, name) of each of Databricks' names in the query.
    """
    for column in find_all(query, exp.Column):
        # system.mlflow.runs_latest.run_id; but not span.status.code, a field of a field
        db, name = column.db.lower(), column.table.lower()
        is_system = db == SCHEMA and column.catalog.lower() in ("", "system")
        if is_system or (db and (column.catalog.lower(), db, name) in published):
            column.set("db", None)
            column.set("catalog", None)


def _placeholder(node: exp.Placeholder) -> str:
    if not node.name or not node.name.isidentifier():
        raise StatementRefused("Parameters are written :name.")
    return node.name


def _cast_parameters(query: exp.Query, casts: Mapping[str, str]) -> None:
    for placeholder in list(find_all(query, exp.Placeholder)):
        if placeholder.name in casts:
            kind = exp.DataType.build(casts[placeholder.name], dialect=Reader)
            placeholder.replace(exp.Cast(this=placeholder.copy(), to=kind))


def _first_line(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else "the statement cannot be read"
    return text[:300]
