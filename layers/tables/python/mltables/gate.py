"""The gate of the SQL: reads a statement of Databricks' dialect, refuses what is no single query of
the three tables, and writes it anew from its tree for DuckDB. Runs nothing.

What the text said survives only as far as the tree tells it: comments, hints, further statements
and names of files do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mltables.bounds import Bounds, bounds_read
from mltables.reads import Columns, columns_read
from mltables.tables import TABLES

LONGEST: Final = 100_000
"""Characters of a statement."""
MOST_NODES: Final = 20_000
SCHEMA: Final = "mlflow"
"""Where DuckDB has the views; ``system`` is a name of its own."""

_NAMES: Final = frozenset(table.name for table in TABLES)
_QUALIFIERS: Final = frozenset((("system", "mlflow"), ("", "mlflow"), ("", "")))
_CTE: Final = "cte_"

_CALLED: Final = """
arg_max arg_min array_agg array_distinct array_sort bool_and bool_or cardinality date_sub dayname
entropy fsum geomean isfinite isinf kurtosis list list_avg list_contains list_distinct list_filter
list_max list_min list_sort list_sum list_transform mad map_contains_key map_entries map_keys
map_values monthname product regexp_matches sem skewness strftime weekday
"""
FUNCTIONS: Final = frozenset(_CALLED.split())
"""DuckDB's own functions that may be called although the dialect does not have them."""

_REFUSED: Final = {
    exp.Command: "commands",
    exp.DDL: "statements that create",
    exp.DML: "statements that write",
    exp.Into: "INTO",
    exp.Inline: "inline(): name the fields, or use explode() of a list",
    exp.Pivot: "PIVOT",
    exp.MatchRecognize: "MATCH_RECOGNIZE",
    exp.TableSample: "TABLESAMPLE",
    exp.Parameter: "variables",
    exp.SessionParameter: "variables",
    exp.Lock: "locks",
}


class Refused(Exception):
    """The message says what is wrong with the statement."""


class Prepared(NamedTuple):
    """A statement for DuckDB, its placeholders written ``$name``."""

    sql: str
    parameters: frozenset[str]
    reads: Mapping[str, Columns]
    """The tables that it reads, each with the columns."""
    bounds: Mapping[str, Bounds]
    """Of each table which rows it can want, as SQL."""


def prepare(text: str) -> Prepared:
    """
    Raises:
        Refused: it is not one query of the tables.
    """
    if len(text) > LONGEST:
        raise Refused(f"A statement has at most {LONGEST} characters.")
    try:
        query = _single(text)
        _check(query)
        _rewrite(query)
        names = frozenset(_placeholder(one) for one in query.find_all(exp.Placeholder))
        reads = columns_read(query, SCHEMA)
        bounds = bounds_read(query, SCHEMA)
        return Prepared(query.sql("duckdb", comments=False), names, reads, bounds)
    except SqlglotError as error:
        raise Refused(f"Syntax error: {_first_line(error)}") from error
    except RecursionError as error:
        raise Refused("The statement is nested too deeply.") from error


def _single(text: str) -> exp.Query:
    statements = [one for one in sqlglot.parse(text, read="databricks") if one is not None]
    if len(statements) != 1:
        raise Refused(f"One SELECT is needed, not {len(statements)} statements.")
    (query,) = statements
    if not isinstance(query, exp.Select | exp.SetOperation):
        raise Refused("Only SELECT is allowed.")
    return query


def _check(query: exp.Query) -> None:
    for count, node in enumerate(query.walk()):
        if count > MOST_NODES:
            raise Refused("The statement is too long.")
        for kind, name in _REFUSED.items():
            if isinstance(node, kind):
                raise Refused(f"Not allowed: {name}.")
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            if name not in FUNCTIONS:
                raise Refused(f"The function {node.name}() does not exist here.")
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            raise Refused("Functions have no schema here.")


def _rewrite(query: exp.Query) -> None:
    _point_to_views(query)
    for node in list(query.find_all(exp.TimestampDiff, exp.DateDiff)):
        unit = (node.text("unit") or "day").lower()
        if isinstance(node, exp.TimestampDiff) or unit != "day":
            # Whole units that have passed, where DuckDB's date_diff counts boundaries.
            node.replace(
                exp.Anonymous(
                    this="date_sub",
                    expressions=[exp.Literal.string(unit), node.expression, node.this],
                )
            )
    for node in list(query.find_all(exp.Explode, exp.Posexplode)):
        if isinstance(node, exp.Posexplode):
            raise Refused("posexplode() does not exist here.")
        if isinstance(node.this, exp.Column) and node.this.name.lower() in {"params", "tags"}:
            raise Refused(
                "explode() of a map does not exist here: use explode(map_entries(params)), whose "
                "members have a key and a value."
            )


def _point_to_views(query: exp.Query) -> None:
    """Names of tables become those of the views; names of common table expressions get a beginning
    of their own, so that none reaches anything that is not in the statement."""
    expressions = {}
    for cte in query.find_all(exp.CTE):
        expressions[cte.alias.lower()] = cte.alias
    for table in list(query.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier):
            raise Refused("Table functions are not allowed.")
        name = table.name.lower()
        qualifier = table.catalog.lower(), table.db.lower()
        alias = table.alias or table.name
        if qualifier == ("", "") and name in expressions:
            target = exp.to_identifier(_CTE + name, quoted=True)
            table.set("this", target)
        elif name in _NAMES and qualifier in _QUALIFIERS:
            table.set("this", exp.to_identifier(name, quoted=True))
            table.set("db", exp.to_identifier(SCHEMA, quoted=True))
            table.set("catalog", None)
        else:
            shown = ".".join(part for part in (table.catalog, table.db, table.name) if part)
            raise Refused(
                f"There is no table {shown}. There are system.mlflow.experiments_latest, "
                "system.mlflow.runs_latest and system.mlflow.run_metrics_history."
            )
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    for cte in query.find_all(exp.CTE):
        cte.args["alias"].set("this", exp.to_identifier(_CTE + cte.alias.lower(), quoted=True))
    for column in query.find_all(exp.Column):
        # system.mlflow.runs_latest.run_id
        if column.args.get("db"):
            column.set("db", None)
            column.set("catalog", None)


def _placeholder(node: exp.Placeholder) -> str:
    if not node.name or not node.name.isidentifier():
        raise Refused("Parameters are written :name.")
    return node.name


def _first_line(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else "the statement cannot be read"
    return text[:300]
