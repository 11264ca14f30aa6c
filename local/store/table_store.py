"""One open DynamoDB table: its SQLite file, its schema, and the SQL statements for single rows."""

from __future__ import annotations

import functools
import itertools
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from local.store.attribute_values import Raw
from local.store.database import Database
from local.store.errors import error
from local.store.schema import Schema, quoted

encode: Final = json.JSONEncoder(
    separators=(",", ":"), check_circular=False, ensure_ascii=False
).encode
decode: Final = json.loads

_revisions: Final = itertools.count(random.SystemRandom().getrandbits(62))
"""Revision numbers of rows. Each process counts from a random number, so that two processes
practically never give the same number."""


def next_revision() -> int:
    """Returns a new revision number for a row of a table of the local store."""
    return next(_revisions)


class StoredItem(NamedTuple):
    """The row of an item in the SQLite store, as it was read. ``text`` is the item's JSON."""

    id: int
    rev: int
    size: int
    text: str


class Statement(NamedTuple):
    sql: str
    values: tuple[Any, ...]


class TableStore:
    """An open table of the local store: its SQLite file and schema. Callable from many threads."""

    def __init__(self, path: Path) -> None:
        """Opens the table's file.

        Raises:
            Unusable: SQLite cannot open the file.
            ClientError: ResourceNotFoundException, if the file holds no table.
        """
        self.database = Database(path)
        try:
            row = self.database.row("SELECT text FROM description")
            if row is None:
                raise not_found()
        except BaseException:
            self.database.close()
            raise
        self.old_tokens_removed_at = float("-inf")
        """When tokens that are no longer remembered were last removed, in seconds since the
        epoch."""
        self.description: Raw = decode(row[0])
        self.schema = schema = Schema(self.description)
        pk, sk = quoted(schema.partition), quoted(schema.sort)
        columns = ["id", "rev", "size", "type", "data", *map(quoted, schema.attributes)]
        self.select = f"SELECT id, rev, size, data FROM items WHERE {pk} = ? AND {sk} = ?"  # noqa: S608
        self._insert = (
            f"INSERT INTO items({', '.join(columns[1:])})"  # noqa: S608
            f" VALUES ({', '.join('?' * len(columns[1:]))}) ON CONFLICT DO NOTHING"
        )

    def describe(self, description: Raw) -> None:
        """Stores a new description of the table (the answer of DescribeTable) in the table's file,
        and keeps it in memory."""
        self.database.write("UPDATE description SET text = ?", (encode(description),))
        self.description = description

    def read(self, pk: str, sk: str) -> StoredItem | None:
        """Returns the SQLite row of the item with this key; None if there is none."""
        row = self.database.row(self.select, (pk, sk))
        return None if row is None else StoredItem(*row)

    def change(
        self,
        key: tuple[str, str],
        row: StoredItem | None,
        old: Raw | None,
        new: Raw | None,
        size: int,
        indexed: tuple[str | None, ...] | None = None,
    ) -> Statement | None:
        """Returns the SQL statement that changes an item to ``new`` (None deletes it); None without
        a change. It has no effect if another writer has changed the item since ``row`` was read.

        Args:
            indexed: :meth:`Schema.indexed_values` of ``new``, if they are known.

        Raises:
            ClientError: an attribute of an index's key has a wrong type or size.
        """
        if new is None:
            if row is None:
                return None
            return Statement("DELETE FROM items WHERE id = ? AND rev = ?", (row.id, row.rev))
        if indexed is None:
            indexed = self.schema.indexed_values(new)
        if row is None or old is None:
            values = (next_revision(), size, type_of(new), encode(new), *key, *indexed)
            return Statement(self._insert, values)
        if new == old:
            return None
        before = [old.get(name) for name in self.schema.indexed]
        changed = tuple(
            at
            for at, (former, text) in enumerate(zip(before, indexed, strict=True))
            if (None if former is None else former["S"]) != text
        )
        return Statement(
            _update(self.schema.indexed, changed),
            (
                *(next_revision(), size, type_of(new), encode(new)),
                *(indexed[at] for at in changed),
                *(row.id, row.rev),
            ),
        )

    def joined(self, selected: str, count: int) -> str:
        """Returns the SQL that selects the columns ``selected`` of ``count`` items in SQLite (the
        alias of their table is ``i``). Its parameters: each item's partition key and sort key.
        """
        return _joined(self.schema.keys, selected, count)

    def collection_size(self, pk: str) -> int:
        """Returns the total size in bytes of the items in a partition."""
        row = self.database.row(
            f"SELECT total(size) FROM items WHERE {quoted(self.schema.partition)} = ?",  # noqa: S608
            (pk,),
        )
        return int(row[0])


def type_of(item: Raw) -> str | None:
    """Returns the item's attribute ``type``, by which the stream's readers select records; None if
    it has none.
    """
    value = item.get("type")
    return None if value is None else value.get("S")


def not_found() -> Exception:
    return error("ResourceNotFoundException", "Requested resource not found")


def flat(keys: Iterable[Sequence[str]]) -> list[str]:
    """Returns the parts of all keys (partition keys and sort keys) in one list."""
    return [part for key in keys for part in key]


@functools.lru_cache(512)
def _update(indexed: tuple[str, ...], changed: tuple[int, ...]) -> str:
    more = "".join(f", {quoted(indexed[at])} = ?" for at in changed)
    return f"UPDATE items SET rev = ?, size = ?, type = ?, data = ?{more} WHERE id = ? AND rev = ?"  # noqa: S608


@functools.lru_cache(512)
def _joined(keys: tuple[str, str], selected: str, count: int) -> str:
    # SQLite reads the whole table for (pk, sk) IN (VALUES …).
    pairs = ", ".join(["(?, ?)"] * count)
    pk, sk = map(quoted, keys)
    return (
        f"SELECT {selected} FROM (SELECT column1 pk, column2 sk FROM (VALUES {pairs})) k"  # noqa: S608
        f" CROSS JOIN items i ON i.{pk} = k.pk AND i.{sk} = k.sk"
    )
