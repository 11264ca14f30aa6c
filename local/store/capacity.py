"""Computes the capacity units of an operation, by the rules of DynamoDB's documentation ("DynamoDB
read and write operations", "Local secondary indexes", "Global secondary indexes").
"""

from __future__ import annotations

from typing import Any, Final

from local.store.attribute_values import Raw, name_size, size_of
from local.store.schema import Index, Schema

READ_BYTES: Final = 4096
WRITE_BYTES: Final = 1024
TRANSACTION_FACTOR: Final = 2


class Capacity:
    """Adds up the DynamoDB capacity units that one request consumes, for the table and for each
    index."""

    __slots__ = ("_indexes", "_schema", "_table")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._table = 0.0
        self._indexes: dict[str, float] = {}

    def add_read(self, size: int, *, consistent: bool, index: str | None = None) -> None:
        """Adds the read capacity units of a read of ``size`` bytes: one for each started 4 KB, at
        least one; half as many if the read is eventually consistent.
        """
        units = max(1, -(-size // READ_BYTES)) * (1.0 if consistent else 0.5)
        if index is None:
            self._table += units
        else:
            self._indexes[index] = self._indexes.get(index, 0.0) + units

    def add_write(
        self,
        old: Raw | None,
        new: Raw | None,
        old_size: int,
        new_size: int,
        *,
        factor: int = 1,
    ) -> None:
        """Adds the write capacity units of a write: one for each started KB of the larger of the
        old and the new item, and those for changed entries of the secondary indexes.

        Args:
            factor: units of the table (not of the indexes) per KB; :data:`TRANSACTION_FACTOR` in a
                transaction.
        """
        self._table += factor * _write_units(max(old_size, new_size))
        before, after = old or {}, new or {}
        for index in self._schema.indexes.values():
            if index.sort not in after and index.sort not in before:
                continue  # most items have entries in few indexes
            units = _index_units(index, before, after, old_size, new_size)
            if units:
                name = index.name or ""
                self._indexes[name] = self._indexes.get(name, 0.0) + units

    def answer(self, detail: str | None, kind: str | None = None) -> Raw | None:
        """Returns the field ConsumedCapacity of an answer; None unless ``detail`` (the request's
        ReturnConsumedCapacity) is TOTAL or INDEXES. ``kind`` is ``Read`` or ``Write`` in a
        transaction, whose answer has the units under that name too.
        """
        if detail not in ("TOTAL", "INDEXES"):
            return None
        total = self._table + sum(self._indexes.values())
        consumed: dict[str, Any] = {"TableName": self._schema.name, **_named(total, kind)}
        if detail == "INDEXES":
            consumed["Table"] = _named(self._table, kind)
            for name, units in self._indexes.items():
                is_global = self._schema.indexes[name].is_global
                indexes = "GlobalSecondaryIndexes" if is_global else "LocalSecondaryIndexes"
                consumed.setdefault(indexes, {})[name] = _named(units, kind)
        return consumed


def _named(units: float, kind: str | None) -> dict[str, float]:
    return {"CapacityUnits": units, **({f"{kind}CapacityUnits": units} if kind else {})}


def entry_size(index: Index, item: Raw) -> int:
    """Returns the size in bytes of an item's entry in an index of the table."""
    names = item if index.projected is None else index.projected
    return sum([name_size(name) + size_of(item[name]) for name in names if name in item])


def _write_units(size: int) -> int:
    return max(1, -(-size // WRITE_BYTES))


def _index_units(index: Index, old: Raw, new: Raw, old_size: int, new_size: int) -> int:
    partition, sort = index.partition, index.sort
    was = sort in old and partition in old
    is_now = sort in new and partition in new
    if not was and not is_now:
        return 0
    is_same = was and is_now and old[sort] == new[sort] and old[partition] == new[partition]
    if is_same and _is_unchanged(index, old, new):
        return 0
    if index.projected is not None and max(old_size, new_size) > WRITE_BYTES:
        # An entry is not larger than its item, so the entry of an item up to this size takes one
        # unit.
        old_size, new_size = entry_size(index, old), entry_size(index, new)
    if is_same:
        return _write_units(max(old_size, new_size))
    return (_write_units(old_size) if was else 0) + (_write_units(new_size) if is_now else 0)


def _is_unchanged(index: Index, old: Raw, new: Raw) -> bool:
    """Whether two versions of an item have the same entry in the index."""
    if index.projected is None:
        return old == new
    return not index.others or all(old.get(name) == new.get(name) for name in index.others)
