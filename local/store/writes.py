"""Executes DynamoDB's operations PutItem, UpdateItem and DeleteItem on the embedded SQLite store,
and evaluates single writes of batches and transactions.

A write outside of a batch or transaction reads the item and evaluates its condition and change
without holding a lock. It then changes the row if the row's revision is still the same; otherwise
it starts again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from local.store.attribute_values import ITEM_BYTES, Raw, checked_item, name_size
from local.store.capacity import Capacity
from local.store.errors import condition_failed, invalid
from local.store.placeholders import BoundCondition, Placeholders, bound_condition
from local.store.projection import parts_of
from local.store.table_store import Statement, StoredItem, TableStore, decode
from local.store.updates import BoundUpdate

_RETURNED: Final = {
    "PutItem": ("NONE", "ALL_OLD"),
    "DeleteItem": ("NONE", "ALL_OLD"),
    "UpdateItem": ("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"),
}


class ItemChange(NamedTuple):
    """A DynamoDB item before a write (``old``) and after it (``new``), and its sizes in bytes. None
    stands for an item that does not exist.
    """

    old: Raw | None
    new: Raw | None
    old_size: int
    new_size: int


class Write:
    """A validated DynamoDB write of one item. ``kind`` is Put, Update, Delete or ConditionCheck."""

    __slots__ = ("_indexed", "_item", "_request", "_size", "condition", "key", "kind", "update")

    def __init__(self, table: TableStore, kind: str, request: Raw) -> None:
        """Checks a request, or one operation of a batch or transaction.

        Raises:
            ClientError: the request is invalid regardless of the stored item.
        """
        self.kind = kind
        self._request = request
        self._item: Raw | None = None
        self._size = 0
        self._indexed: tuple[str | None, ...] | None = None
        self.update: BoundUpdate | None = None
        given = Placeholders(request)
        if kind == "Put":
            self._item, self._size = checked_item(request["Item"])
            self.key = table.schema.key_of_item(self._item)
            self._indexed = table.schema.indexed_values(self._item)
        else:
            self.key = table.schema.key_of(request["Key"])
        text = request.get("UpdateExpression")
        if text is not None:
            self.update = BoundUpdate(text, given, table.schema.keys)
        self.condition: BoundCondition | None = bound_condition(
            request, "ConditionExpression", given
        )
        if given.names or given.values:
            _check_needed(request)
        given.check_unused()

    def outcome(self, row: StoredItem | None) -> ItemChange:
        """Returns the item before and after this write, without writing it. ``row`` is the stored
        item; None if there is none.

        Raises:
            ClientError: the condition is false, or the update does not fit the item.
        """
        old = None if row is None else decode(row.text)
        old_size = 0 if row is None else row.size
        if self.condition is not None and not self.condition.holds(old):
            wanted = self._request.get("ReturnValuesOnConditionCheckFailure")
            raise condition_failed(old if wanted == "ALL_OLD" else None)
        if self.kind == "Put":
            return ItemChange(old, self._item, old_size, self._size)
        if self.kind == "Delete":
            return ItemChange(old, None, old_size, 0)
        if self.kind == "ConditionCheck":
            return ItemChange(old, old, old_size, old_size)
        return self._updated(old, old_size)

    def statement(
        self, table: TableStore, row: StoredItem | None, outcome: ItemChange
    ) -> Statement | None:
        """Returns the SQLite statement that writes the change of the item that :meth:`outcome`
        returned (:meth:`TableStore.change`); None if nothing changes."""
        return table.change(
            self.key, row, outcome.old, outcome.new, outcome.new_size, self._indexed
        )

    def _updated(self, old: Raw | None, old_size: int) -> ItemChange:
        base, size = old, old_size
        if base is None:
            base = self._request["Key"]
            size = sum(name_size(name) + name_size(value["S"]) for name, value in base.items())
        if self.update is None:
            return ItemChange(old, dict(base), old_size, size)
        new, growth = self.update.applied(base)
        size += growth
        if size > ITEM_BYTES:
            raise invalid("Item size to update has exceeded the maximum allowed size")
        return ItemChange(old, new, old_size, size)


def put_item(table: TableStore, request: Raw) -> Raw:
    """Answers PutItem."""
    return _written(table, "PutItem", Write(table, "Put", request), request)


def update_item(table: TableStore, request: Raw) -> Raw:
    """Answers UpdateItem."""
    return _written(table, "UpdateItem", Write(table, "Update", request), request)


def delete_item(table: TableStore, request: Raw) -> Raw:
    """Answers DeleteItem."""
    return _written(table, "DeleteItem", Write(table, "Delete", request), request)


def _written(table: TableStore, operation: str, write: Write, request: Raw) -> Raw:
    wanted = request.get("ReturnValues") or "NONE"
    if wanted not in _RETURNED[operation]:
        raise invalid(f"Return values set to invalid value: {wanted}")
    outcome = _apply(table, write)
    answer: Raw = {}
    attributes = _attributes(wanted, outcome, write.update)
    if attributes:
        answer["Attributes"] = attributes
    detail = request.get("ReturnConsumedCapacity")
    if detail and detail != "NONE":
        capacity = Capacity(table.schema)
        capacity.add_write(*outcome)
        answer["ConsumedCapacity"] = capacity.answer(detail)
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        answer["ItemCollectionMetrics"] = collection_metrics(table, write.key[0])
    return answer


def _apply(table: TableStore, write: Write) -> ItemChange:
    while True:
        row = table.read(*write.key)
        outcome = write.outcome(row)
        statement = write.statement(table, row, outcome)
        if statement is None or table.database.write(*statement):
            return outcome


def _attributes(wanted: str, outcome: ItemChange, update: BoundUpdate | None) -> Raw | None:
    if wanted == "NONE":
        return None
    item = outcome.old if wanted.endswith("OLD") else outcome.new
    if item is None or wanted.startswith("ALL"):
        return item
    return parts_of(item, update.paths) if update else None


def collection_metrics(table: TableStore, pk: str) -> Raw:
    """Returns the ItemCollectionMetrics of a partition. Its sizes are in gigabytes."""
    gigabytes = table.collection_size(pk) / 1024**3
    return {
        "ItemCollectionKey": {table.schema.partition: {"S": pk}},
        "SizeEstimateRangeGB": [float(int(gigabytes)), float(int(gigabytes) + 1)],
    }


def _check_needed(request: Raw) -> None:
    if not any(
        request.get(name) is not None for name in ("ConditionExpression", "UpdateExpression")
    ):
        name = next(
            name
            for name in ("ExpressionAttributeNames", "ExpressionAttributeValues")
            if request.get(name)
        )
        raise invalid(f"{name} can only be specified when using expressions")
