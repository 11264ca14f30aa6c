"""Query and Scan: pages of at most 1 MB."""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

from local.store.capacity import Capacity
from local.store.errors import invalid, invalid_parameter
from local.store.key_conditions import Bound, KeyRange, key_range
from local.store.placeholders import BoundCondition, Placeholders, bound_condition
from local.store.projection import Projection, bound_projection
from local.store.schema import Index, quoted
from local.store.table_store import TableStore, decode
from local.store.values import Raw, name_size

PAGE_BYTES: Final = 1024 * 1024
FIRST_ROWS: Final = 128
"""Rows of the first statement for a page. Further ones ask for as many as will probably fit."""

_MAX_ROWS: Final = 8000
_SELECTS: Final = ("ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT")


class _Page(NamedTuple):
    rows: list[Any]
    """Items; or the texts of the keys' attributes."""
    sizes: list[int]
    """By which the page is cut: of items, or of entries of an index."""
    has_more: bool


class _Request:
    """What Query and Scan have in common, checked."""

    def __init__(self, table: TableStore, request: Raw) -> None:
        self.table = table
        self.request = request
        name = request.get("IndexName")
        if name is None:
            self.index = table.schema.table
        elif name in table.schema.indexes:
            self.index = table.schema.indexes[name]
        else:
            raise invalid(f"The table does not have the specified index: {name}")
        self.consistent = bool(request.get("ConsistentRead", False))
        if self.consistent and self.index.is_global:
            raise invalid("Consistent reads are not supported on global secondary indexes")
        self.limit: int | None = request.get("Limit")
        if self.limit is not None and self.limit < 1:
            raise invalid(
                f"1 validation error detected: Value '{self.limit}' at 'limit' failed to satisfy "
                "constraint: Member must have value greater than or equal to 1"
            )
        self.given = Placeholders(request)
        self.projection = bound_projection(request, self.given)
        self.filter = bound_condition(request, "FilterExpression", self.given)
        self._check_select()
        self.only_keys = self._needs_only_keys()

    def _check_select(self) -> None:
        select = self.request.get("Select")
        projected = self.index.projected
        if select is not None and select not in _SELECTS:
            raise invalid(f"1 validation error detected: Value '{select}' at 'select' is invalid")
        if self.projection and select not in (None, "SPECIFIC_ATTRIBUTES"):
            wanted = "only the Count" if select == "COUNT" else select
            raise invalid(f"Cannot specify the ProjectionExpression when choosing to get {wanted}")
        if select == "SPECIFIC_ATTRIBUTES" and not self.projection:
            raise invalid(
                "Must specify the AttributesToGet or ProjectionExpression when choosing to get "
                "SPECIFIC_ATTRIBUTES"
            )
        if select == "ALL_PROJECTED_ATTRIBUTES" and self.index.name is None:
            raise invalid_parameter(
                "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
            )
        if self.index.is_global and projected is not None:
            if select == "ALL_ATTRIBUTES":
                raise invalid_parameter(
                    "Select type ALL_ATTRIBUTES is not supported for global secondary index "
                    f"{self.index.name} because its projection type is not ALL"
                )
            missing = set(self.projection.names) - projected if self.projection else ()
            if missing:
                raise invalid_parameter(
                    f"Global secondary index {self.index.name} does not project "
                    f"[{', '.join(sorted(missing))}]"
                )

    def _needs_only_keys(self) -> bool:
        """Whether the columns of the key answer the request."""
        if self.filter:
            return False
        keys = set(self.index.key)
        if self.projection:
            return keys.issuperset(self.projection.names)
        projected = self.index.projected
        return (
            projected is not None
            and projected <= keys
            and self.request.get("Select") != "ALL_ATTRIBUTES"
        )

    @property
    def fetches(self) -> bool:
        """Whether items of the table are read for entries of a local index."""
        if self.index.projected is None or self.index.is_global:
            return False
        if self.projection:
            return not self.index.projected.issuperset(self.projection.names)
        return self.request.get("Select") == "ALL_ATTRIBUTES"


def query(table: TableStore, request: Raw) -> Raw:
    """Answers Query."""
    checked = _Request(table, request)
    entries = key_range(request, checked.index, checked.given)
    checked.given.check_unused()
    start = _start_texts(checked, entries.partition)
    descending = not request.get("ScanIndexForward", True)
    page = _read_page(checked, entries, start, descending=descending)
    return _answer(checked, page)


def scan(table: TableStore, request: Raw) -> Raw:
    """Answers Scan; items come in the order of their keys."""
    if request.get("TotalSegments", 1) != 1:
        raise invalid("this store scans in one segment")
    checked = _Request(table, request)
    checked.given.check_unused()
    page = _read_page(checked, None, _start_texts(checked, None), descending=False)
    return _answer(checked, page)


def _start_texts(checked: _Request, partition: str | None) -> tuple[str, ...] | None:
    """Returns the texts of the exclusive start key, in the order of the index's key."""
    start = checked.request.get("ExclusiveStartKey")
    if start is None:
        return None
    index = checked.index
    try:
        texts = tuple([start[name]["S"] for name in index.key])
    except (KeyError, TypeError) as failure:
        raise invalid("The provided starting key is invalid") from failure
    if len(start) != len(texts):
        raise invalid("The provided starting key is invalid")
    if partition is not None and start[index.partition]["S"] != partition:
        raise invalid(
            "The provided starting key is outside query boundaries based on provided conditions"
        )
    return texts


def _read_page(
    checked: _Request,
    entries: KeyRange | None,
    start: tuple[str, ...] | None,
    *,
    descending: bool,
) -> _Page:
    index, limit = checked.index, checked.limit
    rows: list[Any] = []
    sizes: list[int] = []
    total, room = 0, FIRST_ROWS
    while True:
        count = room if limit is None else min(room, limit - len(rows))
        sql, values = _statement(checked, entries, start, descending=descending)
        text, stored = checked.table.database.row(sql, (*values, count))
        chunk = decode(f"[{text or ''}]")
        measured = (
            [_entry_size(index, row) for row in chunk]
            if checked.only_keys and index.name is not None
            else [int(size) for size in stored.split(",")]
            if stored
            else []
        )
        for at, size in enumerate(measured):
            if total + size > PAGE_BYTES and (rows or at):
                return _Page(rows + chunk[:at], sizes + measured[:at], True)
            total += size
        rows += chunk
        sizes += measured
        if len(chunk) < count:
            return _Page(rows, sizes, False)
        if limit is not None and len(rows) == limit:
            return _Page(rows, sizes, True)
        start = _texts(checked, rows[-1])
        average = max(1, total // len(rows))
        room = min(_MAX_ROWS, (PAGE_BYTES - total) // average + 2)


def _texts(checked: _Request, row: Any) -> tuple[str, ...]:
    if checked.only_keys:
        return tuple(row)
    return tuple([row[name]["S"] for name in checked.index.key])


def _entry_size(index: Index, texts: list[str]) -> int:
    return sum(map(name_size, texts)) + sum(map(len, index.key))


def _statement(
    checked: _Request,
    entries: KeyRange | None,
    start: tuple[str, ...] | None,
    *,
    descending: bool,
) -> tuple[str, list[Any]]:
    """Returns SQL with a placeholder for the number of rows at its end, and its values."""
    index = checked.index
    values: list[Any] = []
    low = high = None
    if entries is not None:
        values.append(entries.partition)
        low, high = entries.low, entries.high
        if start is not None:
            # SQLite seeks by one lower and one upper bound: the page's start replaces one of them.
            bound = Bound(start[index.key.index(index.sort)], True)
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
            checked.only_keys,
            low and low.inclusive,
            high and high.inclusive,
            start is not None,
            descending,
        ),
        values,
    )


def _position(bound: Bound) -> bytes:
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
    low: bool | None,
    high: bool | None,
    has_start: bool,
    descending: bool,
) -> str:
    """``low`` and ``high`` tell whether a bound is inclusive; None if there is none."""
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
    data = f"json_array({', '.join(map(quoted, index.key))})" if only_keys else "data"
    ordered = ", ".join(f"{quoted(name)} {'DESC' if descending else 'ASC'}" for name in order)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    return (
        "SELECT group_concat(data), group_concat(size) FROM"  # noqa: S608
        f" (SELECT {data} AS data, size FROM items {where}ORDER BY {ordered} LIMIT ?)"
    )


def _answer(checked: _Request, page: _Page) -> Raw:
    request, index = checked.request, checked.index
    answer: Raw = {}
    rows, count = page.rows, len(page.rows)
    if request.get("Select") == "COUNT":
        answer["Count"] = len(_filtered(rows, checked.filter))
    else:
        if checked.only_keys:
            items = _keys_only(index, rows, checked.projection)
        else:
            items = _filtered(rows, checked.filter)
            items = _projected(items, checked)
        answer["Items"] = items
        answer["Count"] = len(items)
    answer["ScannedCount"] = count
    if page.has_more:
        texts = _texts(checked, rows[-1])
        answer["LastEvaluatedKey"] = {
            name: {"S": text} for name, text in zip(index.key, texts, strict=True)
        }
    consumed = _capacity(checked, page).answer(request.get("ReturnConsumedCapacity"))
    if consumed:
        answer["ConsumedCapacity"] = consumed
    return answer


def _filtered(rows: list[Raw], condition: BoundCondition | None) -> list[Raw]:
    return rows if condition is None else [item for item in rows if condition.holds(item)]


def _keys_only(index: Index, rows: list[Any], projection: Projection | None) -> list[Raw]:
    key = index.key
    chosen = [(name, key.index(name)) for name in (key if projection is None else projection.names)]
    return [{name: {"S": row[at]} for name, at in chosen} for row in rows]


def _projected(items: list[Raw], checked: _Request) -> list[Raw]:
    projection, projected = checked.projection, checked.index.projected
    if projection is not None:
        return [projection.applied(item) for item in items]
    if projected is None or checked.fetches:
        return items
    return [{name: item[name] for name in item if name in projected} for item in items]


def _capacity(checked: _Request, page: _Page) -> Capacity:
    index, sizes = checked.index, page.sizes
    capacity = Capacity(checked.table.schema)
    consistent = checked.consistent
    if index.name is None:
        capacity.add_read(sum(sizes), consistent=consistent)
    elif checked.fetches:
        entries = [_entry_size(index, list(_texts(checked, row))) for row in page.rows]
        capacity.add_read(sum(entries), consistent=consistent, index=index.name)
        # "You are charged for read capacity units for every base table item fetched."
        for size in sizes:
            capacity.add_read(size, consistent=consistent)
    else:
        capacity.add_read(sum(sizes), consistent=consistent, index=index.name)
    return capacity
