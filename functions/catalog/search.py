"""Which models a filter is met by, found in the values that all models have of a name: the models
themselves are not looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from catalog.generation import MODELS, Generation
from mlcore.catalog.columns import OWN, PARTS, Column
from mlcore.search.filter_query import (
    Either,
    Every,
    Leaf,
    Node,
    Opposite,
    SomePart,
    Test,
)

_TEXTS: Final = ("name", "description", "provider", "libraryName")
_TASKS: Final = "tasks"


def parts_of(node: Node, read: Generation, level: str = OWN) -> Iterator[str]:
    """The parts of a generation that a filter is about."""
    if isinstance(node, Leaf):
        if not node.known:
            yield read.properties_part(node.name)
        elif level == PARTS or node.name not in ("id", "name", "source_id", "sourceId"):
            yield read.attribute_part(level, node.name)
    elif isinstance(node, Opposite):
        yield from parts_of(node.node, read, level)
    else:
        inner = PARTS if isinstance(node, SomePart) else level
        for one in node.nodes:
            yield from parts_of(one, read, inner)


def words_parts(read: Generation) -> list[str]:
    return [MODELS, *(read.attribute_part(OWN, name) for name in (*_TEXTS[1:], _TASKS))]


def places(node: Node, read: Generation, level: str = OWN) -> set[int] | None:
    """The places of the models, or with another level of the artifacts, that meet a filter; None
    for all."""
    match node:
        case Leaf():
            return _met(node, read, level)
        case Opposite(inner):
            found = places(inner, read, level)
            return set() if found is None else set(range(read.count(level))) - found
        case SomePart(nodes):
            parts = places(Every(nodes), read, PARTS)
            owners = read.owners
            return set(owners) if parts is None else {owners[at] for at in parts}
        case Either(nodes):
            united: set[int] = set()
            for one in nodes:
                found = places(one, read, level)
                if found is None:
                    return None
                united |= found
            return united
        case Every(nodes):
            left: set[int] | None = None
            for one in nodes:
                found = places(one, read, level)
                if found is not None:
                    left = found if left is None else left & found
            return left


def _met(leaf: Leaf, read: Generation, level: str) -> set[int]:
    if leaf.known:
        return set(_those(read.attribute(level, leaf.name), leaf.tests[""]))
    found: set[int] = set()
    for kind, column in read.custom(level, leaf.name).items():
        if kind in leaf.tests:
            found.update(_those(column, leaf.tests[kind]))
    return found


def _those(column: Column, test: Test) -> Iterator[int]:
    return (at for at, value in zip(column.at, column.values, strict=True) if test(value))


def saying(words: str, read: Generation) -> set[int]:
    """The models one of whose texts contains words in lower case."""
    found: set[int] = set()
    for name in _TEXTS:
        found.update(_those(read.attribute(OWN, name), lambda text: words in text.lower()))
    tasks = read.attribute(OWN, _TASKS)
    found.update(_those(tasks, lambda all_: any(words in task.lower() for task in all_)))
    return found
