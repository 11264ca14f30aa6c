"""Finds the models of the model catalog that match a filter or contain words. It evaluates columns
(all models' values of one attribute), so that the models themselves need not be read.

A model's position is its index in the order of all models by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from catalog.generations import MODELS, Generation
from mlcore.catalog.property_columns import ARTIFACT_LEVEL, MODEL_LEVEL, Column
from mlcore.search.kubeflow_filter import (
    AllOf,
    AnyOf,
    AnyPart,
    Node,
    Not,
    PropertyTest,
    Test,
)

_TEXTS: Final = ("name", "description", "provider", "libraryName")
_TASKS: Final = "tasks"


def required_parts(node: Node, generation: Generation, level: str = MODEL_LEVEL) -> Iterator[str]:
    """Yields the names of the stored parts of the model catalog that the evaluation of a filter
    reads, so that they can be fetched together first.

    Args:
        node: the parsed filter.
        level: whether the filter is on models or (``ARTIFACT_LEVEL``) on artifacts.
    """
    if isinstance(node, PropertyTest):
        if not node.known:
            yield generation.properties_part(node.name)
        elif level == ARTIFACT_LEVEL or node.name not in ("id", "name", "source_id", "sourceId"):
            yield generation.attribute_part(level, node.name)
    elif isinstance(node, Not):
        yield from required_parts(node.node, generation, level)
    else:
        inner = ARTIFACT_LEVEL if isinstance(node, AnyPart) else level
        for child in node.nodes:
            yield from required_parts(child, generation, inner)


def parts_for_words(generation: Generation) -> list[str]:
    return [
        MODELS,
        *(generation.attribute_part(MODEL_LEVEL, name) for name in (*_TEXTS[1:], _TASKS)),
    ]


def matching_positions(
    node: Node, generation: Generation, level: str = MODEL_LEVEL
) -> set[int] | None:
    """Returns the positions of the catalog's models that match a filter; None if the filter has no
    condition, so that all models match.

    Args:
        node: the parsed filter.
        level: ``ARTIFACT_LEVEL`` evaluates the filter on artifacts; positions are then those of
            artifacts.
    """
    match node:
        case PropertyTest():
            return _positions_meeting(node, generation, level)
        case Not(inner):
            matches = matching_positions(inner, generation, level)
            return set() if matches is None else set(range(generation.count(level))) - matches
        case AnyPart(nodes):
            parts = matching_positions(AllOf(nodes), generation, ARTIFACT_LEVEL)
            owners = generation.owners
            return set(owners) if parts is None else {owners[position] for position in parts}
        case AnyOf(nodes):
            united: set[int] = set()
            for child in nodes:
                matches = matching_positions(child, generation, level)
                if matches is None:
                    return None
                united |= matches
            return united
        case AllOf(nodes):
            common: set[int] | None = None
            for child in nodes:
                matches = matching_positions(child, generation, level)
                if matches is not None:
                    common = matches if common is None else common & matches
            return common


def _positions_meeting(leaf: PropertyTest, generation: Generation, level: str) -> set[int]:
    if leaf.known:
        return set(
            _positions_passing(generation.attribute_values(level, leaf.name), leaf.tests[""])
        )
    positions: set[int] = set()
    for kind, column in generation.custom_values(level, leaf.name).items():
        if kind in leaf.tests:
            positions.update(_positions_passing(column, leaf.tests[kind]))
    return positions


def _positions_passing(column: Column, test: Test) -> Iterator[int]:
    return (
        position for position, value in zip(column.at, column.values, strict=True) if test(value)
    )


def positions_with_words(words: str, generation: Generation) -> set[int]:
    """Returns the positions of the model catalog's models whose name, description, provider,
    library or tasks contain the text ``words`` (in lower case), ignoring case."""
    positions: set[int] = set()
    for name in _TEXTS:
        positions.update(
            _positions_passing(
                generation.attribute_values(MODEL_LEVEL, name), lambda text: words in text.lower()
            )
        )
    tasks = generation.attribute_values(MODEL_LEVEL, _TASKS)
    positions.update(
        _positions_passing(tasks, lambda all_: any(words in task.lower() for task in all_))
    )
    return positions
