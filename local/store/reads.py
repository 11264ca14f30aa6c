"""Executes DynamoDB's GetItem, BatchGetItem and TransactGetItems on the local SQLite table."""

from __future__ import annotations

from typing import Final

from local.store.attribute_values import Raw
from local.store.capacity import TRANSACTION_FACTOR, Capacity
from local.store.errors import invalid
from local.store.placeholders import Placeholders
from local.store.projection import Projection, bound_projection
from local.store.table_store import TableStore, decode, flat

BATCH_KEYS: Final = 100
BATCH_BYTES: Final = 16 * 1024 * 1024
TRANSACTION_ITEMS: Final = 100


def get_item(table: TableStore, request: Raw) -> Raw:
    """Answers GetItem."""
    given = Placeholders(request)
    projection = bound_projection(request, given)
    given.check_unused()
    row = table.read(*table.schema.key_of(request["Key"]))
    answer: Raw = {}
    if row is not None:
        answer["Item"] = _projected(decode(row.text), projection)
    capacity = Capacity(table.schema)
    capacity.add_read(row.size if row else 0, consistent=bool(request.get("ConsistentRead", False)))
    consumed = capacity.answer(request.get("ReturnConsumedCapacity"))
    if consumed:
        answer["ConsumedCapacity"] = consumed
    return answer


def batch_get_item(table: TableStore, request: Raw) -> Raw:
    """Executes BatchGetItem for one table and returns the answer: at most 100 keys and 16 MB of
    items. Keys whose items exceed the 16 MB are returned as unprocessed.
    """
    ((name, wanted),) = request["RequestItems"].items()
    given = Placeholders(wanted)
    projection = bound_projection(wanted, given)
    given.check_unused()
    keys = [table.schema.key_of(key) for key in wanted["Keys"]]
    if not keys:
        raise invalid(
            "The batch get request list for a table cannot be empty or null in BatchGetItem"
        )
    if len(keys) > BATCH_KEYS:
        raise invalid("Too many items requested for the BatchGetItem call")
    if len(set(keys)) < len(keys):
        raise invalid("Provided list of item keys contains duplicates")
    text, sizes = _joined(table, keys)
    remaining: list[Raw] = []
    if sum(sizes) > BATCH_BYTES:
        count = _fitting(table, keys)
        keys, remaining = keys[:count], wanted["Keys"][count:]
        text, sizes = _joined(table, keys)
    items = decode(f"[{text}]")
    capacity = Capacity(table.schema)
    consistent = bool(wanted.get("ConsistentRead", False))
    for size in [*sizes, *[0] * (len(keys) - len(sizes))]:
        capacity.add_read(size, consistent=consistent)
    unprocessed = {name: {**wanted, "Keys": remaining}} if remaining else {}
    answer: Raw = {
        "Responses": {name: [_projected(item, projection) for item in items]},
        "UnprocessedKeys": unprocessed,
    }
    consumed = capacity.answer(request.get("ReturnConsumedCapacity"))
    if consumed:
        answer["ConsumedCapacity"] = [consumed]
    return answer


def _joined(table: TableStore, keys: list[tuple[str, str]]) -> tuple[str, list[int]]:
    """Returns the items of some keys as JSON texts joined by commas, and the sizes of the items."""
    sql = table.joined("group_concat(i.data), group_concat(i.size)", len(keys))
    text, sizes = table.database.row(sql, flat(keys))
    return text or "", [int(size) for size in sizes.split(",")] if sizes else []


def _fitting(table: TableStore, keys: list[tuple[str, str]]) -> int:
    """Returns how many of the keys, from the first on, have items that fit into one answer; at
    least one.
    """
    total = 0
    for at, key in enumerate(keys):
        row = table.read(*key)
        total += row.size if row else 0
        if total > BATCH_BYTES:
            return max(1, at)
    return len(keys)


def transact_get_items(table: TableStore, request: Raw) -> Raw:
    """Executes TransactGetItems for one table and returns the answer. All items are read from the
    same state of the table."""
    operations = [operation["Get"] for operation in request["TransactItems"]]
    if len(operations) > TRANSACTION_ITEMS:
        raise invalid("Member must have length less than or equal to 100")
    keys, projections = [], []
    for operation in operations:
        given = Placeholders(operation)
        projections.append(bound_projection(operation, given))
        given.check_unused()
        keys.append(table.schema.key_of(operation["Key"]))
    if len(set(keys)) < len(keys):
        raise invalid("Transaction request cannot include multiple operations on one item")
    text, _ = _joined(table, keys)
    schema = table.schema
    items = {
        (item[schema.partition]["S"], item[schema.sort]["S"]): item for item in decode(f"[{text}]")
    }
    responses = []
    for key, projection in zip(keys, projections, strict=True):
        item = items.get(key)
        responses.append({} if item is None else {"Item": _projected(item, projection)})
    answer: Raw = {"Responses": responses}
    capacity = Capacity(schema)
    for key in keys:
        row = table.read(*key)
        for _ in range(TRANSACTION_FACTOR):
            capacity.add_read(row.size if row else 0, consistent=True)
    consumed = capacity.answer(request.get("ReturnConsumedCapacity"), "Read")
    if consumed:
        answer["ConsumedCapacity"] = [consumed]
    return answer


def _projected(item: Raw, projection: Projection | None) -> Raw:
    return item if projection is None else projection.applied(item)
