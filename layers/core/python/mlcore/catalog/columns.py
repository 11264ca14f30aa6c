"""The values that models and their artifacts have, by name: what a list is filtered and ordered by,
without the models themselves. The loader writes them, and who answers reads those that a request
is about.

A model is known by its place in the order of names, an artifact by its place among those of all
models, in that order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from mlcore.catalog import filters
from mlcore.catalog.entry import Entry

OWN: Final = "m"
"""Of models."""
PARTS: Final = "a"
"""Of artifacts."""

_BUCKET_BYTES: Final = 400_000
"""About how much JSON one bucket of custom properties holds."""
_MOST_BUCKETS: Final = 200

_ATTRIBUTES: Final = {
    # What the list of all models has is none of them.
    OWN: tuple(name for name in filters.MODEL_NAMES if name not in ("id", "name", "source_id")),
    PARTS: filters.ARTIFACT_NAMES,
}


class Column(NamedTuple):
    at: Sequence[int]
    """The places of those that have a value, ascending."""
    values: Sequence[Any]


EMPTY: Final = Column((), ())

Columns = Mapping[str, Column]
"""Of one property: by the type of the value."""


class Gathering:
    """The columns of a generation while it is written."""

    def __init__(self) -> None:
        self._attributes: dict[str, _Open] = {}
        self._properties: dict[tuple[str, str, str], _Open] = {}
        self._counts = {OWN: 0, PARTS: 0}

    def add(self, model: Entry) -> None:
        """The next model."""
        self._add(OWN, model)
        for child in model.children:
            self._add(PARTS, child)

    def _add(self, level: str, entry: Entry) -> None:
        at = self._counts[level]
        self._counts[level] = at + 1
        for name in _ATTRIBUTES[level]:
            value = filters.attribute(entry, name)
            if value is not None:
                place = attribute_name(level, name)
                column = self._attributes.get(place)
                if column is None:
                    column = self._attributes[place] = _Open()
                column.add(at, value)
        for name, kind in entry.types.items():
            key = (level, name, kind)
            found = self._properties.get(key)
            if found is None:
                found = self._properties[key] = _Open()
            found.add(at, entry.properties[name])

    def attributes(self) -> Iterator[tuple[str, str]]:
        """The columns of what all models or artifacts may have: name and JSON."""
        for place, column in self._attributes.items():
            level = place.partition(":")[0]
            yield place, column.json(self._counts[level])

    def buckets(self) -> list[str]:
        """The columns of custom properties: JSON of some of them by level, name and type."""
        size = sum(len(one.at) * 20 + 100 for one in self._properties.values())
        count = min(_MOST_BUCKETS, 1 + size // _BUCKET_BYTES)
        found: list[dict[str, dict[str, dict[str, str]]]] = [{} for _ in range(count)]
        for (level, name, kind), column in self._properties.items():
            levels = found[bucket_of(name, count)].setdefault(level, {})
            levels.setdefault(name, {})[kind] = column.json(self._counts[level])
        return [_nested(bucket) for bucket in found]


class _Open:
    __slots__ = ("at", "values")

    def __init__(self) -> None:
        self.at: list[int] = []
        self.values: list[Any] = []

    def add(self, at: int, value: Any) -> None:
        self.at.append(at)
        self.values.append(value)

    def json(self, count: int) -> str:
        """Where all have a value, their places are not said."""
        at = None if len(self.at) == count else self.at
        return json.dumps([at, self.values], separators=(",", ":"))


def _nested(data: Any) -> str:
    """The JSON of mappings whose innermost values are JSON already."""
    if isinstance(data, str):
        return data
    return "{" + ",".join(f"{json.dumps(key)}:{_nested(each)}" for key, each in data.items()) + "}"


def of_stored(data: Sequence[Any], count: int) -> Column:
    """
    Args:
        count: how many models or artifacts there are.
    """
    at, values = data
    return Column(range(count) if at is None else at, values)


def attribute_name(level: str, name: str) -> str:
    """What the column of an attribute is called; former spellings are of the same one."""
    return f"{level}:{filters.FORMER.get(name, name)}"


def bucket_of(name: str, count: int) -> int:
    """Which of so many buckets holds the columns of a property."""
    if count <= 1:
        return 0
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count


def offsets(models: Iterable[Entry]) -> list[int]:
    """Where the artifacts of each model begin, and where the last of all ends."""
    found = [0]
    for model in models:
        found.append(found[-1] + len(model.children))
    return found
