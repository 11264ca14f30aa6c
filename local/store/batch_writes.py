"""Executes DynamoDB's operations BatchWriteItem and TransactWriteItems on the SQLite store."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from botocore.exceptions import ClientError

from local.store.attribute_values import Raw, binary_text
from local.store.capacity import TRANSACTION_FACTOR, Capacity
from local.store.errors import code_of, error, invalid, message_of
from local.store.table_store import Statement, StoredItem, TableStore, flat
from local.store.writes import ItemChange, Write, collection_metrics

BATCH_REQUESTS: Final = 25
TRANSACTION_ITEMS: Final = 100
TRANSACTION_BYTES: Final = 4 * 1024 * 1024
TOKEN_SECONDS: Final = 600
"""How long a transaction's token is remembered, as DynamoDB does."""
TOKEN_CHARACTERS: Final = 36
_REMOVAL_SECONDS: Final = 10
"""Expired tokens are removed at most once in this many seconds."""

_Key = tuple[str, str]


def batch_write_item(table: TableStore, request: Raw) -> Raw:
    """Executes BatchWriteItem for one table and returns the answer. All requests are executed, in
    one transaction, so none is returned as unprocessed.
    """
    ((name, requests),) = request["RequestItems"].items()
    if not 0 < len(requests) <= BATCH_REQUESTS:
        raise invalid("Too many items requested for the BatchWriteItem call")
    writes = []
    for each in requests:
        if each.keys() == {"PutRequest"}:
            writes.append(Write(table, "Put", {"Item": each["PutRequest"]["Item"]}))
        elif each.keys() == {"DeleteRequest"}:
            writes.append(Write(table, "Delete", {"Key": each["DeleteRequest"]["Key"]}))
        else:
            number = "more than one datatypes set" if len(each) > 1 else "no datatype set"
            raise invalid(
                f"Supplied AttributeValue has {number}, must contain exactly one of the supported "
                "datatypes"
            )
    if len({write.key for write in writes}) < len(writes):
        raise invalid("Provided list of item keys contains duplicates")
    with table.database.transaction() as connection:
        rows = _rows(table, connection, [write.key for write in writes])
        outcomes, statements = zip(
            *(_planned(table, write, rows.get(write.key)) for write in writes), strict=True
        )
        _execute(connection, statements)
    answer: Raw = {"UnprocessedItems": {}}
    _add_consumed(answer, table, request, outcomes, factor=1)
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        answer["ItemCollectionMetrics"] = {name: _metrics(table, writes)}
    return answer


def transact_write_items(table: TableStore, request: Raw) -> Raw:
    """Executes TransactWriteItems for one table and returns the answer: executes all operations; or
    none, and raises an error with the reasons. A request whose token was used within the last ten
    minutes is not executed again.

    Raises:
        ClientError: TransactionCanceledException, IdempotentParameterMismatchException or
            ValidationException.
    """
    token = request.get("ClientRequestToken")
    if token is not None and not 0 < len(token) <= TOKEN_CHARACTERS:
        raise invalid(
            "1 validation error detected: Value at 'clientRequestToken' failed to satisfy "
            "constraint: Member must have length less than or equal to 36"
        )
    operations = request["TransactItems"]
    if not 0 < len(operations) <= TRANSACTION_ITEMS:
        raise invalid(
            "1 validation error detected: Value at 'transactItems' failed to satisfy constraint: "
            "Member must have length less than or equal to 100"
        )
    writes: list[Write] = []
    for operation in operations:
        ((kind, content),) = operation.items()
        writes.append(_checked(table, kind, content))
    if len({write.key for write in writes}) < len(writes):
        raise invalid("Transaction request cannot include multiple operations on one item")
    digest = _digest(operations) if token else ""
    with table.database.transaction() as connection:
        if token and _is_known(connection, token, digest):
            outcomes: Sequence[ItemChange] | None = None
        else:
            rows = _rows(table, connection, [write.key for write in writes])
            outcomes, statements = _decided(table, writes, rows)
            _execute(connection, statements)
            if token:
                _remember(table, connection, token, digest)
    answer: Raw = {}
    if outcomes is None:
        _add_reads(answer, table, request, writes)
    else:
        _add_consumed(answer, table, request, outcomes, factor=TRANSACTION_FACTOR)
    if request.get("ReturnItemCollectionMetrics") == "SIZE":
        answer["ItemCollectionMetrics"] = {table.schema.name: _metrics(table, writes)}
    return answer


def _checked(table: TableStore, kind: str, content: Raw) -> Write:
    if kind == "ConditionCheck" and content.get("ConditionExpression") is None:
        raise invalid(
            "1 validation error detected: Value null at 'conditionExpression' failed to satisfy "
            "constraint: Member must not be null"
        )
    if kind == "Update" and content.get("UpdateExpression") is None:
        raise invalid(
            "1 validation error detected: Value null at 'updateExpression' failed to satisfy "
            "constraint: Member must not be null"
        )
    return Write(table, kind, content)


def _rows(
    table: TableStore, connection: sqlite3.Connection, keys: Sequence[_Key]
) -> dict[_Key, StoredItem]:
    """Returns the rows that exist for some keys, by key, within the connection's transaction."""
    pk, sk = (f'i."{name}"' for name in table.schema.keys)
    sql = table.joined(f"{pk}, {sk}, i.id, i.rev, i.size, i.data", len(keys))
    return {(row[0], row[1]): StoredItem(*row[2:]) for row in connection.execute(sql, flat(keys))}


def _planned(
    table: TableStore, write: Write, row: StoredItem | None
) -> tuple[ItemChange, Statement | None]:
    outcome = write.outcome(row)
    if write.kind == "ConditionCheck":
        return outcome, None
    return outcome, write.statement(table, row, outcome)


def _decided(
    table: TableStore, writes: Iterable[Write], rows: dict[_Key, StoredItem]
) -> tuple[list[ItemChange], list[Statement | None]]:
    """Evaluates all operations of a transaction without writing. Returns their outcomes, and for
    each the SQL statement that executes it (None if nothing changes).

    Raises:
        ClientError: TransactionCanceledException, if an operation fails; ValidationException, if
            the new items exceed 4 MB.
    """
    outcomes: list[ItemChange] = []
    statements: list[Statement | None] = []
    reasons: list[Raw] = []
    for write in writes:
        try:
            outcome, statement = _planned(table, write, rows.get(write.key))
        except ClientError as failure:
            reasons.append(_reason(failure))
        else:
            outcomes.append(outcome)
            statements.append(statement)
            reasons.append({"Code": "None"})
    if len(outcomes) < len(reasons):
        raise cancelled(reasons)
    if sum(outcome.new_size for outcome in outcomes) > TRANSACTION_BYTES:
        raise invalid("Collection size exceeded: the items of a transaction exceed 4 MB")
    return outcomes, statements


def _reason(failure: ClientError) -> Raw:
    code = code_of(failure)
    known = {
        "ConditionalCheckFailedException": "ConditionalCheckFailed",
        "ValidationException": "ValidationError",
    }
    reason: Raw = {"Code": known[code], "Message": message_of(failure)}
    item = failure.response.get("Item")
    if item is not None:
        reason["Item"] = item
    return reason


def cancelled(reasons: list[Raw]) -> ClientError:
    """Returns the exception for a transaction that was not executed, with a reason for each
    operation.
    """
    codes = ", ".join(reason["Code"] for reason in reasons)
    return error(
        "TransactionCanceledException",
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        CancellationReasons=reasons,
    )


def _execute(connection: sqlite3.Connection, statements: Iterable[Statement | None]) -> None:
    for statement in statements:
        if statement is not None:
            connection.execute(*statement)


def _add_consumed(
    answer: Raw, table: TableStore, request: Raw, outcomes: Iterable[ItemChange], *, factor: int
) -> None:
    capacity = Capacity(table.schema)
    for outcome in outcomes:
        capacity.add_write(*outcome, factor=factor)
    kind = "Write" if factor == TRANSACTION_FACTOR else None
    consumed = capacity.answer(request.get("ReturnConsumedCapacity"), kind)
    if consumed:
        answer["ConsumedCapacity"] = [consumed]


def _add_reads(answer: Raw, table: TableStore, request: Raw, writes: Iterable[Write]) -> None:
    """Adds the capacity units of a repeated transaction, which is not executed again, to the
    answer: it counts as reads of its items.
    """
    capacity = Capacity(table.schema)
    for write in writes:
        row = table.read(*write.key)
        for _ in range(TRANSACTION_FACTOR):
            capacity.add_read(row.size if row else 0, consistent=True)
    consumed = capacity.answer(request.get("ReturnConsumedCapacity"), "Read")
    if consumed:
        answer["ConsumedCapacity"] = [consumed]


def _metrics(table: TableStore, writes: Iterable[Write]) -> list[Raw]:
    partitions = dict.fromkeys(write.key[0] for write in writes)
    return [collection_metrics(table, pk) for pk in partitions]


# -- tokens ----------------------------------------------------------------------------------------


_sorted_json: Final = json.JSONEncoder(
    sort_keys=True, check_circular=False, default=binary_text
).encode
"""Encodes JSON with sorted keys. ``json.dumps`` takes twice as long, because it checks for circular
references."""


def _digest(operations: Any) -> str:
    return hashlib.sha256(_sorted_json(operations).encode()).hexdigest()


def _is_known(connection: sqlite3.Connection, token: str, digest: str) -> bool:
    """Returns whether a transaction with this token was executed within the last ten minutes.

    Raises:
        ClientError: IdempotentParameterMismatchException, if that was a different transaction.
    """
    row = connection.execute(
        "SELECT request FROM tokens WHERE token = ? AND created > ?",
        (token, time.time() - TOKEN_SECONDS),
    ).fetchone()
    if row is not None and row[0] != digest:
        raise error(
            "IdempotentParameterMismatchException",
            "Request was made with the same client token but different parameters",
        )
    return row is not None


def _remember(table: TableStore, connection: sqlite3.Connection, token: str, digest: str) -> None:
    now = time.time()
    if now >= table.old_tokens_removed_at + _REMOVAL_SECONDS:
        connection.execute("DELETE FROM tokens WHERE created <= ?", (now - TOKEN_SECONDS,))
        table.old_tokens_removed_at = now
    connection.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?, ?)", (token, digest, now))
