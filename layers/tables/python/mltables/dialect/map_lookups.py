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
"""In the ``meta`` of a lookup or call: the column that holds its value."""


class MapLookup(NamedTuple):
    """A lookup of a key in a map column, such as ``attributes['k']``."""

    node: exp.Expr
    column: exp.Column
    key: str

    def read_from(self, name: str) -> None:
        """Records that the generated SQL is to read the column ``name``, of the same table or
        struct as the map's column, in place of this lookup of a key in the map."""
        read_from(self.node, self.column, name)


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


def read_from(node: exp.Expr, column: exp.Column, name: str) -> None:
    """Records that the generated SQL is to read the column ``name``, of the same table or struct as
    ``column``, in place of ``node``: a lookup in ``column``, or a call with this only argument."""
    read = column.copy()
    read.set("this", exp.to_identifier(name, quoted=True))
    node.meta[_COLUMN] = read


def column_of(node: exp.Expr) -> exp.Column | None:
    """Returns the column that SQL reads in place of a lookup such as ``attributes['k']``, or of a
    call, as :func:`read_from` has set it; None if SQL has the lookup or call itself."""
    column: exp.Column | None = node.meta.get(_COLUMN)
    return column


def columns_of(tree: exp.Expr) -> frozenset[str]:
    """Returns the names of the columns that an SQL statement reads in place of a map or a text:
    some lookups, such as ``m['k']``, and some calls have a column of their own."""
    return frozenset(
        column.name
        for node in find_all(tree, exp.Bracket, exp.Anonymous)
        if (column := column_of(node)) is not None
    )


def identifiers(tree: exp.Expr) -> Iterator[exp.Identifier]:
    """Yields the identifiers in a syntax tree. Leaves out the map of a lookup such as
    ``attributes['k']``, and the argument of a call, in whose place SQL reads another column."""
    unread = {
        id(word)
        for node in find_all(tree, exp.Bracket, exp.Anonymous)
        if column_of(node) is not None
        for word in find_all(_read_column(node), exp.Identifier)
    }
    return (word for word in find_all(tree, exp.Identifier) if id(word) not in unread)


def _read_column(node: exp.Expr) -> exp.Expr:
    argument: exp.Expr = node.this if isinstance(node, exp.Bracket) else node.expressions[0]
    return argument
