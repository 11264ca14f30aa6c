"""Inlines common table expressions that only choose rows and columns of one table: each mention
computes the expression again.

DuckDB would compute a common table expression with several mentions once, and keep all of its rows
in memory: those of ten million spans do not fit. Reading the columns of a table twice takes less
time than keeping them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from mltables.dialect.aggregate_functions import AGGREGATES, WITHIN
from mltables.dialect.row_generators import Duck
from mltables.dialect.syntax_nodes import find_all
from mltables.table_definitions import TABLES_BY_NAME

MOST_MENTIONS: Final = 4
"""An expression with more mentions is not inlined, because it would be computed for each of
them."""

_CHOOSES_ROWS: Final = frozenset(("kind", "expressions", "from_", "where"))
"""The clauses of a SELECT that only chooses rows and columns."""
NONDETERMINISTIC: Final = frozenset(("rand", "random", "uuid"))
"""Functions that return something else each time."""


def inline(query: exp.Query, schema: str) -> None:
    """Marks the common table expressions that DuckDB must not materialize, in place.

    Args:
        query: its table names point to DuckDB's views in the schema, or to its common table
            expressions.
    """
    expressions = list(_definitions(query))
    names = [expression.alias for expression in expressions]
    if len(set(names)) < len(names) or any(each.recursive for each in find_all(query, exp.With)):
        return
    mentions = Counter(table.name for table in find_all(query, exp.Table) if not table.db)
    small: set[str] = set()
    """The names of deterministic expressions that read small tables only."""
    computed_again: set[str] = set()
    """The names of expressions that are marked, or that mention a marked one. An expression that
    mentions one of these is not marked: the number of computations would grow exponentially."""
    for expression in expressions:
        if all(_is_small(node, small, schema) for node in expression.this.walk()):
            small.add(expression.alias)
        below = {table.name for table in find_all(expression, exp.Table) if not table.db}
        if below & computed_again:
            computed_again.add(expression.alias)
        elif 1 < mentions[expression.alias] <= MOST_MENTIONS and _is_plain(
            expression.this, small, schema
        ):
            expression.set("materialized", False)
            computed_again.add(expression.alias)


def _definitions(node: exp.Expr) -> Iterator[exp.CTE]:
    """Yields the common table expressions in a tree, each after all that it may mention."""
    own = node.args.get("with_")
    for expression in own.expressions if own else []:
        yield from _definitions(expression.this)
        yield expression
    for child in node.iter_expressions():
        if child is not own:
            yield from _definitions(child)


def _is_plain(select: exp.Expr, small: set[str], schema: str) -> bool:
    """Whether a query is a SELECT that only chooses rows and columns of a table."""
    if not isinstance(select, exp.Select):
        return False
    if any(value for clause, value in select.args.items() if clause not in _CHOOSES_ROWS):
        return False
    source = select.args.get("from_")
    table = source.this if source else None
    if not isinstance(table, exp.Table) or table.db != schema or table.name not in TABLES_BY_NAME:
        return False
    if any(value for part, value in table.args.items() if part not in ("this", "db", "alias")):
        return False
    return all(node is table or _is_cheap(node, small, schema) for node in select.walk())


def _is_cheap(node: exp.Expr, small: set[str], schema: str) -> bool:
    """Whether a part of a SELECT is computed row by row, is deterministic, and reads no other large
    table, directly or in another expression."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        if name in AGGREGATES or name in WITHIN:
            return False
    return _is_small(node, small, schema) and not isinstance(node, exp.Window | Duck)


def _is_small(node: exp.Expr, small: set[str], schema: str) -> bool:
    """Whether a part of a query is deterministic and reads small tables only."""
    if isinstance(node, exp.Table):
        if not node.db:
            return node.name in small
        table = TABLES_BY_NAME.get(node.name)
        return node.db == schema and table is not None and not table.partition
    if isinstance(node, exp.Anonymous):
        return node.name.lower() not in NONDETERMINISTIC
    # Without an order, LIMIT may choose different rows each time.
    return not isinstance(node, exp.Limit | exp.Offset | exp.Fetch)
