"""Finds lookups with a literal key in a map, such as ``attributes['k']``, in a syntax tree, and
records which column a lookup reads in place of the map.

The lookup stays in the tree with its key, so that other steps, for example file pruning, still see
it. Only ``sql_generator`` writes the column in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlglot import exp

from mltables.dialect.syntax_nodes import find_all

_CALLS: Final = frozenset(("element_at", "try_element_at"))
_COLUMN: Final = "column"
"""In the ``meta`` of a lookup: the column that holds its value."""


class MapLookup(NamedTuple):
    """A lookup of a key in a map column, such as ``attributes['k']``."""

    node: exp.Expr
    column: exp.Column
    key: str

    def read_from(self, name: str) -> None:
        """Records that the generated SQL is to read the column ``name``, of the same table or
        struct as the map's column, in place of this lookup of a key in the map."""
        column = self.column.copy()
        column.set("this", exp.to_identifier(name, quoted=True))
        self.node.meta[_COLUMN] = column


def lookups(tree: exp.Expr) -> Iterator[MapLookup]:
    """Yields an SQL tree's lookups ``m['k']``, ``element_at(m, 'k')`` and ``try_element_at(m,
    'k')`` in which ``m`` is a column and ``'k'`` a string literal."""
    for node in find_all(tree, exp.Bracket, exp.Anonymous):
        if isinstance(node, exp.Bracket):
            arguments = [node.this, *node.expressions]
        elif node.name.lower() in _CALLS:
            arguments = node.expressions
        else:
            continue
        if len(arguments) != 2:
            continue
        column, key = arguments
        if isinstance(column, exp.Column) and isinstance(key, exp.Literal) and key.is_string:
            yield MapLookup(node, column, str(key.this))


def column_of(node: exp.Expr) -> exp.Column | None:
    """Returns the column from which SQL reads a lookup such as ``attributes['k']`` in place of the
    map, as :meth:`MapLookup.read_from` has set it; None if SQL reads the map."""
    column: exp.Column | None = node.meta.get(_COLUMN)
    return column


def columns_of(tree: exp.Expr) -> frozenset[str]:
    """Returns the names of the columns that an SQL statement reads in place of a map: some lookups
    in maps, such as ``m['k']``, have a column of their own."""
    return frozenset(
        column.name for lookup in lookups(tree) if (column := column_of(lookup.node)) is not None
    )


def identifiers(tree: exp.Expr) -> Iterator[exp.Identifier]:
    """Yields the identifiers in a syntax tree. Leaves out the map of a lookup such as
    ``attributes['k']`` that reads a column of its own in place of the map."""
    unread = {
        id(word)
        for lookup in lookups(tree)
        if column_of(lookup.node) is not None
        for word in find_all(lookup.column, exp.Identifier)
    }
    return (word for word in find_all(tree, exp.Identifier) if id(word) not in unread)
