"""Columns of the model catalog: the values of one property of all models, or of all artifacts.
Lists are filtered and ordered by columns, without loading the models.

The loader writes the columns; a request reads only those that it needs. A model is identified by
its index in the order of names, an artifact by its index among the artifacts of all models in that
order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from mlcore.catalog import filter_fields
from mlcore.catalog.entry import CatalogEntry

MODEL_LEVEL: Final = "m"
"""The level of columns with values of models."""
ARTIFACT_LEVEL: Final = "a"
"""The level of columns with values of artifacts."""

_BUCKET_BYTES: Final = 400_000
"""Approximate JSON size of one bucket of custom properties."""
_MAX_BUCKETS: Final = 200

_ATTRIBUTES: Final = {
    # The list of all models already holds id, name and source.
    MODEL_LEVEL: tuple(
        name for name in filter_fields.MODEL_NAMES if name not in ("id", "name", "source_id")
    ),
    ARTIFACT_LEVEL: filter_fields.ARTIFACT_NAMES,
}


class Column(NamedTuple):
    """The values of one property in the model catalog: ``values[i]`` is that of the model or
    artifact with index ``at[i]``."""

    at: Sequence[int]
    """Indexes of the models or artifacts that have a value, ascending."""
    values: Sequence[Any]


EMPTY: Final = Column((), ())

Columns = Mapping[str, Column]
"""The columns of one property by type of value."""


class ColumnCollector:
    """Collects the values of a model catalog's attributes and custom properties as columns, while a
    generation of the catalog is written."""

    def __init__(self) -> None:
        self._attributes: dict[str, _OpenColumn] = {}
        self._properties: dict[tuple[str, str, str], _OpenColumn] = {}
        self._counts = {MODEL_LEVEL: 0, ARTIFACT_LEVEL: 0}

    def add(self, model: CatalogEntry) -> None:
        """Adds the values of the next model of Kubeflow's catalog, and of the model's artifacts, to
        the columns."""
        self._add(MODEL_LEVEL, model)
        for child in model.children:
            self._add(ARTIFACT_LEVEL, child)

    def _add(self, level: str, entry: CatalogEntry) -> None:
        index = self._counts[level]
        self._counts[level] = index + 1
        for name in _ATTRIBUTES[level]:
            value = filter_fields.attribute(entry, name)
            if value is not None:
                column_name = attribute_name(level, name)
                column = self._attributes.get(column_name)
                if column is None:
                    column = self._attributes[column_name] = _OpenColumn()
                column.add(index, value)
        for name, value_type in entry.types.items():
            key = (level, name, value_type)
            property_column = self._properties.get(key)
            if property_column is None:
                property_column = self._properties[key] = _OpenColumn()
            property_column.add(index, entry.properties[name])

    def attributes(self) -> Iterator[tuple[str, str]]:
        """Yields (name, JSON text) of each column that lists of the model catalog filter by: the
        values of one built-in attribute of all models, or of all artifacts."""
        for column_name, column in self._attributes.items():
            level = column_name.partition(":")[0]
            yield column_name, column.json(self._counts[level])

    def buckets(self) -> list[str]:
        """Returns the columns of the catalog entries' custom properties, distributed over buckets.
        Each bucket is a JSON text: level → name → type → column."""
        size = sum(len(column_.at) * 20 + 100 for column_ in self._properties.values())
        count = min(_MAX_BUCKETS, 1 + size // _BUCKET_BYTES)
        buckets: list[dict[str, dict[str, dict[str, str]]]] = [{} for _ in range(count)]
        for (level, name, value_type), column in self._properties.items():
            levels = buckets[bucket_of(name, count)].setdefault(level, {})
            levels.setdefault(name, {})[value_type] = column.json(self._counts[level])
        return [_nested(bucket) for bucket in buckets]


class _OpenColumn:
    __slots__ = ("at", "values")

    def __init__(self) -> None:
        self.at: list[int] = []
        self.values: list[Any] = []

    def add(self, at: int, value: Any) -> None:
        self.at.append(at)
        self.values.append(value)

    def json(self, count: int) -> str:
        """Returns the column as JSON text: ``[positions, values]``, where the positions are those
        of the models or artifacts that have a value; null if all ``count`` of them have one."""
        indexes = None if len(self.at) == count else self.at
        return json.dumps([indexes, self.values], separators=(",", ":"))


def _nested(data: Any) -> str:
    """Returns the JSON of nested mappings whose innermost values are JSON text already."""
    if isinstance(data, str):
        return data
    return (
        "{" + ",".join(f"{json.dumps(key)}:{_nested(value)}" for key, value in data.items()) + "}"
    )


def of_stored(data: Sequence[Any], count: int) -> Column:
    """Makes a catalog column (the values of one property) from its stored JSON array.

    Args:
        count: the number of all models, or of all artifacts, of the generation.
    """
    indexes, values = data
    return Column(range(count) if indexes is None else indexes, values)


def attribute_name(level: str, name: str) -> str:
    """Returns the name of the column of an attribute of models or artifacts in Kubeflow's model
    catalog; alternative spellings of the attribute share it."""
    return f"{level}:{filter_fields.ALTERNATIVE_NAMES.get(name, name)}"


def bucket_of(name: str, count: int) -> int:
    """Returns the number of the group, of ``count`` groups, in which the model catalog stores the
    columns of a custom property of models and artifacts."""
    if count <= 1:
        return 0
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count


def offsets(models: Iterable[CatalogEntry]) -> list[int]:
    """Returns for each catalog model the index of its first artifact in the list of all artifacts,
    and at the end the number of all artifacts."""
    offsets_ = [0]
    for model in models:
        offsets_.append(offsets_[-1] + len(model.children))
    return offsets_
