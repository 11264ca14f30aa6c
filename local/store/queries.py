"""Executes DynamoDB's operations Query and Scan on the local server's SQLite store."""

from __future__ import annotations

from typing import Any, Final

from local.store.attribute_values import Raw
from local.store.capacity import Capacity
from local.store.errors import invalid, invalid_parameter
from local.store.key_conditions import KeyRange, key_range
from local.store.pages import Page, PageRequest, entry_sizes, key_texts, read_page
from local.store.placeholders import Placeholders, bound_condition
from local.store.projection import Projection, bound_projection
from local.store.schema import Index
from local.store.table_store import TableStore

_SELECTS: Final = ("ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT")


class _Request:
    """The checked parameters that Query and Scan have in common."""

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

    def check_filter(self) -> None:
        """Raises ClientError if the filter reads key attributes of the queried table or index: "A
        filter expression cannot contain partition key or sort key attributes" (developer guide).
        """
        keys = (self.index.partition, self.index.sort)
        for name in keys if self.filter else ():
            if self.filter and name in self.filter.attributes:
                raise invalid(
                    "Filter Expression can only contain non-primary key attributes: Primary key "
                    f"attribute: {name}"
                )

    def _needs_only_keys(self) -> bool:
        """Returns whether the key columns of the rows suffice to answer the request."""
        keys, projected = set(self.index.key), self.index.projected
        if projected is not None and not projected <= keys:
            return False  # the capacity depends on the size of the entry, not of its key
        if self.visible is not None:
            return True
        return (
            self.filter is None
            and self.projection is not None
            and keys.issuperset(self.projection.names)
        )

    @property
    def visible(self) -> frozenset[str] | None:
        """The attributes that the filter and the answer can use; None for all attributes."""
        return None if self.fetches else self.index.projected

    @property
    def fetches(self) -> bool:
        """Whether a query of a local index also reads the table's items, for attributes that the
        index does not project.
        """
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
    checked.check_filter()
    start = _start_texts(checked, entries)
    return _answer(checked, _page(checked, entries, start))


def scan(table: TableStore, request: Raw) -> Raw:
    """Executes Scan and returns the answer. The items are in the order of their keys."""
    if request.get("TotalSegments", 1) != 1:
        raise invalid("this store scans in one segment")
    checked = _Request(table, request)
    checked.given.check_unused()
    return _answer(checked, _page(checked, None, _start_texts(checked, None)))


def _page(checked: _Request, entries: KeyRange | None, start: tuple[str, ...] | None) -> Page:
    descending = entries is not None and not checked.request.get("ScanIndexForward", True)
    wanted = PageRequest(checked.index, entries, checked.only_keys, checked.fetches, descending)
    return read_page(checked.table.database, wanted, start, checked.limit)


def _start_texts(checked: _Request, entries: KeyRange | None) -> tuple[str, ...] | None:
    """Returns the texts of the request's ExclusiveStartKey in the order of the index's key; None if
    the request has none. Raises ClientError if the key is invalid.
    """
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
    if entries is not None and not (
        start[index.partition]["S"] == entries.partition and entries.holds(start[index.sort]["S"])
    ):
        raise invalid(
            "The provided starting key is outside query boundaries based on provided conditions"
        )
    return texts


def _answer(checked: _Request, page: Page) -> Raw:
    request, index = checked.request, checked.index
    answer: Raw = {}
    rows, count = page.rows, len(page.rows)
    if request.get("Select") == "COUNT":
        answer["Count"] = (
            len(_filtered(_visible(checked, rows), checked)) if checked.filter else count
        )
    else:
        if checked.only_keys and checked.filter is None:
            items = _keys_only(index, rows, checked.projection)
        else:
            items = _filtered(_visible(checked, rows), checked)
            if checked.projection is not None:
                items = [checked.projection.applied(item) for item in items]
        answer["Items"] = items
        answer["Count"] = len(items)
    answer["ScannedCount"] = count
    if page.has_more:
        texts = key_texts(checked.index, rows[-1])
        answer["LastEvaluatedKey"] = {
            name: {"S": text} for name, text in zip(index.key, texts, strict=True)
        }
    consumed = _capacity(checked, page).answer(request.get("ReturnConsumedCapacity"))
    if consumed:
        answer["ConsumedCapacity"] = consumed
    return answer


def _filtered(items: list[Raw], checked: _Request) -> list[Raw]:
    condition = checked.filter
    return items if condition is None else [item for item in items if condition.holds(item)]


def _visible(checked: _Request, rows: list[Any]) -> list[Raw]:
    """Returns the rows reduced to the attributes that the filter and the answer can use."""
    if checked.only_keys:
        return _keys_only(checked.index, rows, None)
    visible = checked.visible
    if visible is None:
        return rows
    return [{name: item[name] for name in item if name in visible} for item in rows]


def _keys_only(index: Index, rows: list[Any], projection: Projection | None) -> list[Raw]:
    key = index.key
    chosen = [(name, key.index(name)) for name in (key if projection is None else projection.names)]
    if len(chosen) == 1:  # usually the sort key, in hundreds of rows of a search
        ((name, at),) = chosen
        return [{name: {"S": row[at]}} for row in rows]
    if len(chosen) == 2:
        (name, at), (other, beside) = chosen
        return [{name: {"S": row[at]}, other: {"S": row[beside]}} for row in rows]
    return [{name: {"S": row[at]} for name, at in chosen} for row in rows]


def _capacity(checked: _Request, page: Page) -> Capacity:
    index, sizes = checked.index, page.sizes
    capacity = Capacity(checked.table.schema)
    consistent = checked.consistent
    if index.name is None:
        capacity.add_read(sum(sizes), consistent=consistent)
    elif checked.fetches:
        entries = sum(entry_sizes(index, page.rows))
        capacity.add_read(entries, consistent=consistent, index=index.name)
        # "You are charged for read capacity units for every base table item fetched."
        for size in sizes:
            capacity.add_read(size, consistent=consistent)
    else:
        capacity.add_read(sum(sizes), consistent=consistent, index=index.name)
    return capacity
