"""The gate of the SQL: reads a statement of Databricks' dialect, refuses what is no single query of
the three tables, and writes it anew from its tree for DuckDB. Runs nothing.

What the text said survives only as far as the tree tells it: comments, hints, further statements
and names of files do not. What the words mean in DuckDB is ``mltables/dialect``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mltables.bounds import Bounds, bounds_read
from mltables.dialect import allowed, catalog, names, refusal, relations, writer
from mltables.dialect.reader import Reader
from mltables.reads import Columns, columns_read
from mltables.tables import TABLES

Refused = refusal.Refused

LONGEST: Final = 100_000
"""Characters of a statement."""
SCHEMA: Final = "mlflow"
"""Where DuckDB has the views; ``system`` is a name of its own."""

_NAMES: Final = frozenset(table.name for table in TABLES)
_QUALIFIERS: Final = frozenset((("system", "mlflow"), ("", "mlflow"), ("", "")))
_INFORMATION: Final = frozenset((("system", catalog.INFORMATION), ("", catalog.INFORMATION)))
_CTE: Final = "cte_"


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
        if (answer := catalog.answered(text)) is not None:
            return Prepared(answer, frozenset(), {}, {})
        query = _single(text)
        allowed.check(query)
        names.name(query)
        relations.rewrite(query)
        _point_to_views(query)
        placeholders = frozenset(_placeholder(one) for one in query.find_all(exp.Placeholder))
        reads = columns_read(query, SCHEMA)
        bounds = bounds_read(query, SCHEMA)
        return Prepared(writer.write(query), placeholders, reads, bounds)
    except SqlglotError as error:
        raise Refused(f"Syntax error: {_first_line(error)}") from error
    except RecursionError as error:
        raise Refused("The statement is nested too deeply.") from error


def _single(text: str) -> exp.Query:
    statements = [one for one in sqlglot.parse(text, read=Reader) if one is not None]
    if len(statements) != 1:
        raise Refused(f"One SELECT is needed, not {len(statements)} statements.")
    (query,) = statements
    if not isinstance(query, exp.Select | exp.SetOperation):
        raise Refused("Only SELECT is allowed, and SHOW and DESCRIBE of the tables.")
    return query


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
        elif qualifier in _INFORMATION and (found := catalog.relation(name)) is not None:
            found.set("alias", table.args.get("alias") or exp.TableAlias(this=table.this.copy()))
            found.set("joins", table.args.get("joins"))
            table.replace(found)
            continue
        else:
            shown = ".".join(part for part in (table.catalog, table.db, table.name) if part)
            raise catalog.missing(shown)
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
