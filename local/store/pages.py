"""Reads pages of a DynamoDB table or of its index: at most 1 MB of items or index entries each."""

from __future__ import annotations

import functools
from itertools import repeat
from typing import Any, Final, NamedTuple

from local.store.attribute_values import name_size
from local.store.capacity import entry_size
from local.store.database import Database
from local.store.key_conditions import KeyBound, KeyRange
from local.store.schema import Index, quoted
from local.store.table_store import decode

PAGE_BYTES: Final = 1024 * 1024
FIRST_ROWS: Final = 16
"""Rows of the first statement for a page (6.25 MB at most). Later statements also stop at the
page's size, for which SQLite takes three times as long for each small row."""

FIRST_KEYS: Final = 1000
"""Rows of the first statement for a page of which only keys are read: as many as searches ask
for."""

_MAX_ROWS: Final = 8000


class Page(NamedTuple):
    rows: list[Any]
    """The items, or if only keys are needed the texts of the key attributes, as tuples."""
    sizes: list[int]
    """The sizes that count towards the page's limit: those of the items, or of the index's
    entries."""
    has_more: bool


class PageRequest(NamedTuple):
    """Which items of the local table (in SQLite) a Query or Scan reads, and which parts of them."""

    source: Index
    """The index that is read, or the table itself."""
    entries: KeyRange | None
    """The partition and the range that are read; None for a Scan."""
    only_keys: bool
    """Whether the key columns suffice, so that the items' JSON is not read."""
    fetches: bool
    """Whether the table's items are read for the entries of a local index."""
    descending: bool

    @property
    def counts_entries(self) -> bool:
        """Whether the limit of 1 MB for a page counts the sizes of the index's entries instead of
        those of the items."""
        return self.source.projected is not None and not self.fetches


def read_page(
    database: Database, wanted: PageRequest, start: tuple[str, ...] | None, limit: int | None
) -> Page:
    """Reads one page of a Query or Scan of the embedded store: items of its table, or entries of an
    index.

    Args:
        start: the key after which the page begins, as texts in the order of the index's key; None
            for the first page.
        limit: the largest number of rows; None for no limit.

    Raises:
        Unusable: SQLite failed.
    """
    rows: list[Any] = []
    sizes: list[int] = []
    total, room = 0, FIRST_KEYS if wanted.only_keys else FIRST_ROWS
    while True:
        count = room if limit is None else min(room, limit - len(rows))
        is_cut = bool(rows) and not wanted.only_keys
        left = PAGE_BYTES if wanted.counts_entries else PAGE_BYTES - total
        sql, values = _statement(wanted, start, is_cut=is_cut)
        *texts, stored = database.row(sql, (*values, count, *([left] if is_cut else [])))
        chunk = _keys(wanted, texts) if wanted.only_keys else decode(f"[{texts[0] or ''}]")
        of_items = list(map(int, stored.split(","))) if stored else []
        measured = entry_sizes(wanted.source, chunk) if wanted.counts_entries else of_items
        if total + sum(measured) > PAGE_BYTES:
            fitting = _fitting(measured, PAGE_BYTES - total, least=not rows)
            if fitting < len(measured):
                return Page(rows + chunk[:fitting], sizes + measured[:fitting], True)
        total += sum(measured)
        rows += chunk
        sizes += measured
        was_cut = is_cut and sum(of_items) > left
        if len(chunk) < count and not was_cut:
            return Page(rows, sizes, False)
        if limit is not None and len(rows) == limit:
            return Page(rows, sizes, True)
        start = key_texts(wanted.source, rows[-1])
        average = max(1, total // len(rows))
        room = min(_MAX_ROWS, (PAGE_BYTES - total) // average + 2)


def _keys(wanted: PageRequest, texts: list[str]) -> list[tuple[str, ...]]:
    """Returns rows of key attributes in the order of the index's key. ``texts`` has a JSON array
    for each of them, without the partition key of a Query."""
    columns: list[Any] = list(map(decode, texts))
    if wanted.entries is not None:
        index = wanted.source
        columns.insert(index.key.index(index.partition), repeat(wanted.entries.partition))
    return list(zip(*columns, strict=False))


def _fitting(sizes: list[int], room: int, *, least: int) -> int:
    """Returns how many of the first ``sizes`` together fit into ``room`` bytes; at least
    ``least``."""
    for at, size in enumerate(sizes):
        room -= size
        if room < 0 and at >= least:
            return at
    return len(sizes)


def key_texts(index: Index, row: Any) -> tuple[str, ...]:
    """Returns an item's key in a DynamoDB index: the texts of the index's key attributes."""
    if isinstance(row, tuple):
        return row
    return tuple([row[name]["S"] for name in index.key])


def entry_sizes(index: Index, rows: list[Any]) -> list[int]:
    """Returns for each SQLite row (an item) the bytes of the item's entry in a DynamoDB index."""
    if rows and isinstance(rows[0], tuple):
        names = sum(map(len, index.key))
        return [names + name_size("".join(row)) for row in rows]
    return [entry_size(index, row) for row in rows]


def _statement(
    wanted: PageRequest, start: tuple[str, ...] | None, *, is_cut: bool
) -> tuple[str, list[Any]]:
    """Returns the SQL of a page and the values of its placeholders, except the last ones: the
    number of rows, and with ``is_cut`` the number of bytes after which no further row is read.
    """
    index, entries, descending = wanted.source, wanted.entries, wanted.descending
    values: list[Any] = []
    low = high = None
    if entries is not None:
        values.append(entries.partition)
        low, high = entries.low, entries.high
        if start is not None:
            # SQLite seeks by one lower and one upper bound: the page's start replaces one of them.
            bound = KeyBound(start[index.key.index(index.sort)], True)
            if descending:
                high = bound if high is None else min(high, bound, key=_position)
            else:
                low = bound if low is None else max(low, bound, key=_position)
        values += [bound.text for bound in (low, high) if bound is not None]
    if start is not None:
        order = _order(index, is_scan=entries is None)
        values += [start[index.key.index(name)] for name in order]
    return (
        _sql(
            index,
            entries is None,
            wanted.only_keys,
            wanted.counts_entries,
            low and low.inclusive,
            high and high.inclusive,
            start is not None,
            descending,
            is_cut,
        ),
        values,
    )


def _position(bound: KeyBound) -> bytes:
    return bound.text.encode()


def _order(index: Index, *, is_scan: bool) -> tuple[str, ...]:
    if not is_scan:
        return index.order
    return tuple(dict.fromkeys((index.partition, *index.order)))


@functools.lru_cache(1024)
def _sql(
    index: Index,
    is_scan: bool,
    only_keys: bool,
    counts_entries: bool,
    low: bool | None,
    high: bool | None,
    has_start: bool,
    descending: bool,
    is_cut: bool,
) -> str:
    """Returns the SQL of a page. ``low`` and ``high`` say whether a bound is inclusive; None for no
    bound.
    """
    order = _order(index, is_scan=is_scan)
    sort = quoted(index.sort)
    conditions = [] if is_scan else [f"{quoted(index.partition)} = ?"]
    if low is not None:
        conditions.append(f"{sort} {'>=' if low else '>'} ?")
    if high is not None:
        conditions.append(f"{sort} {'<=' if high else '<'} ?")
    if index.name is not None and low is None and high is None:
        conditions.append(f"{sort} IS NOT NULL")
    if index.is_global and is_scan:
        conditions.append(f"{quoted(index.partition)} IS NOT NULL")
    names = ", ".join(map(quoted, order))
    if has_start:
        marks = ", ".join("?" * len(order))
        conditions.append(f"({names}) {'<' if descending else '>'} ({marks})")
    ordered = ", ".join(f"{quoted(name)} {'DESC' if descending else 'ASC'}" for name in order)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    chosen = f"FROM items {where}ORDER BY {ordered} LIMIT ?"
    if only_keys:
        columns = [quoted(name) for name in index.key if is_scan or name != index.partition]
        arrays = ", ".join(f"json_group_array({column})" for column in columns)
        # Without the items' sizes SQLite reads the index alone, a third of the work.
        size = "NULL" if counts_entries else "size"
        return (
            f"SELECT {arrays}, group_concat(size) FROM"  # noqa: S608
            f" (SELECT {', '.join(columns)}, {size} AS size {chosen})"
        )
    if not is_cut:
        return (
            "SELECT group_concat(data), group_concat(size) FROM"  # noqa: S608
            f" (SELECT data, size {chosen})"
        )
    # SQLite joins the rows in the order of the first table: only those within the page are read.
    return (
        "SELECT group_concat(i.data), group_concat(k.size) FROM (SELECT id, size, sum(size)"  # noqa: S608
        f" OVER (ROWS UNBOUNDED PRECEDING) AS upto FROM (SELECT id, size {chosen})) k"
        " CROSS JOIN items i ON i.id = k.id WHERE k.upto - k.size <= ?"
    )
