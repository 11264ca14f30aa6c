"""Applies a ProjectionExpression, which selects the parts of an item that an answer contains."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from local.store.attribute_values import Raw
from local.store.conditions import placeholders, value_at
from local.store.errors import invalid
from local.store.parser import Path, parse_projection
from local.store.placeholders import Placeholders


class Projection:
    """A parsed ProjectionExpression: document paths, with names in place of placeholders."""

    __slots__ = ("_are_names", "_paths", "names")

    def __init__(self, text: str, given: Placeholders) -> None:
        """Parses the text; raises ClientError if it is not a valid projection or two paths
        overlap."""
        paths = parse_projection(text)
        given.use("ProjectionExpression", placeholders(iter(paths)), ())
        self._paths: list[Path] = [
            tuple([given.names.get(part, part) for part in path]) for path in paths
        ]
        self.names = tuple(str(path[0]) for path in self._paths)
        """The attributes that the paths begin with."""
        self._are_names = all(len(path) == 1 for path in self._paths)
        if len(set(self._paths)) < len(self._paths) or not self._are_names:
            self._check_overlaps()

    def _check_overlaps(self) -> None:
        ordered = sorted(self._paths, key=len)
        for at, path in enumerate(ordered):
            for other in ordered[:at]:
                if path[: len(other)] == other:
                    raise invalid(
                        "Invalid ProjectionExpression: Two document paths overlap with each other;"
                        " must remove or rewrite one of these paths"
                    )

    def applied(self, item: Raw) -> Raw:
        """Returns a new item with the selected parts of ``item``; it shares values with
        ``item``."""
        if self._are_names:
            return {name: item[name] for name in self.names if name in item}
        return parts_of(item, self._paths)


class _Members(dict[int, Any]):
    """The selected members of a list, by their position in it, while an item is being built."""


def parts_of(item: Raw, paths: Iterable[Path]) -> Raw:
    """Returns a new item that contains only the values at the given paths. No path may begin with
    another one.
    """
    chosen: Raw = {}
    for path in paths:
        value = value_at(item, path, {})
        if value is not None:
            _put_value(chosen, path, value)
    parts: Raw = _without_positions(chosen)
    return parts


def _put_value(chosen: Raw, path: Path, value: Raw) -> None:
    container: Any = chosen
    for part, following in itertools.pairwise(path):
        if isinstance(following, int):
            container = container.setdefault(part, {"L": _Members()})["L"]
        else:
            container = container.setdefault(part, {"M": {}})["M"]
    container[path[-1]] = value


def _without_positions(value: Any) -> Any:
    if isinstance(value, _Members):
        return [_without_positions(value[at]) for at in sorted(value)]
    if isinstance(value, dict):
        return {name: _without_positions(inner) for name, inner in value.items()}
    return value


def bound_projection(request: Raw, given: Placeholders) -> Projection | None:
    """Returns the parsed ProjectionExpression of the request; None if the request has none."""
    text = request.get("ProjectionExpression")
    return None if text is None else Projection(text, given)
