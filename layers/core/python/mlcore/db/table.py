"""The only caller of DynamoDB: single items, pages, batches and transactions, with retries and
counting.

Items go in and come out as DynamoDB JSON (``{"PK": {"S": "…"}, …}``). Every read of the table and
of a local index is strongly consistent; only a global index can lag. Failures of the service become
:mod:`mlcore.errors`; a failed condition becomes :class:`ConditionFailed` with the item that failed
it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack, cast

from botocore.exceptions import BotoCoreError, ClientError

from mlcore import errors
from mlcore.db import capacity, deadline, failures
from mlcore.db.attributes import ItemAttribute
from mlcore.db.client import client
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.keys import Key, sort_keys_with
from mlcore.environment import settings

T = TypeVar("T")

BATCH_GET_KEYS = 100
BATCH_WRITE_ITEMS = 25
PARALLEL_CALLS = 16
BATCH_ATTEMPTS = 8
CONFLICT_ATTEMPTS = 12

_random = random.SystemRandom()
"""Processes that start from one snapshot must not wait alike."""


class TransactionFailed(Exception):
    """Conditions of a transaction did not hold; ``items`` maps an operation's position to the item
    found there."""

    def __init__(self, items: dict[int, Raw | None]) -> None:
        super().__init__("transaction failed")
        self.items = items


class Page(NamedTuple):
    items: list[Raw]
    last_key: Raw | None
    """Where the next page starts; None after the last one."""


class Range(TypedDict, total=False):
    """What of a partition a Query is about; see :meth:`Table.query`."""

    index: str | None
    prefix: str | None
    between: tuple[str, str] | None
    descending: bool
    limit: int | None
    attributes: Sequence[ItemAttribute[Any]] | None


class Put(NamedTuple):
    item: Raw
    condition: Condition | None = None


class Delete(NamedTuple):
    key: Key
    condition: Condition | None = None


class Change(NamedTuple):
    """An UpdateItem of a transaction."""

    key: Key
    update: Update


class Check(NamedTuple):
    """A ConditionCheck of a transaction: nothing is written."""

    key: Key
    condition: Condition


Operation = Put | Delete | Change | Check


def key_of(operation: Operation) -> Key:
    """The item that an operation is about."""
    return key_in(operation.item) if isinstance(operation, Put) else operation.key


def key_in(item: Raw) -> Key:
    """The key that an item carries."""
    return Key(item["PK"]["S"], item["SK"]["S"])


class Table:
    """The table named by the settings."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    # -- reads -------------------------------------------------------------------------------------

    def get(self, key: Key) -> Raw | None:
        """GetItem, strongly consistent."""
        answer = self._call("GetItem", Key=_key(key), ConsistentRead=True)
        item: Raw | None = answer.get("Item")
        return item

    def batch_get(self, keys: Sequence[Key]) -> list[Raw | None]:
        """BatchGetItem, strongly consistent, in the order of ``keys`` (repeats allowed), None where
        there is none."""
        distinct = list(dict.fromkeys(keys))
        chunks = [
            distinct[at : at + BATCH_GET_KEYS] for at in range(0, len(distinct), BATCH_GET_KEYS)
        ]
        found: dict[Key, Raw] = {}
        for items in self.parallel([partial(self._batch_get, chunk) for chunk in chunks]):
            for item in items:
                found[key_in(item)] = item
        return [found.get(key) for key in keys]

    def query(
        self,
        pk: str,
        *,
        index: str | None = None,
        prefix: str | None = None,
        between: tuple[str, str] | None = None,
        descending: bool = False,
        limit: int | None = None,
        start: Raw | None = None,
        attributes: Sequence[ItemAttribute[Any]] | None = None,
    ) -> Page:
        """One Query request: a page of at most 1 MB.

        Args:
            pk: value of the partition key of the table, a local index, or (``gsiNpk``) a global
                one.
            index: ``LSI1`` … ``GSI5``, or None for the table.
            prefix: what the sort key begins with.
            between: inclusive bounds of the sort key, instead of ``prefix``.
            attributes: what to return; everything when None (for an index: fetched from the table).
        """
        partition, sort = _index_keys(index)
        names = {"#p": partition}
        values: Raw = {":p": {"S": pk}}
        condition = "#p=:p"
        if prefix:
            between = sort_keys_with(prefix)
        if between:
            names["#s"] = sort
            values[":s"], values[":t"] = {"S": between[0]}, {"S": between[1]}
            condition += " AND #s BETWEEN :s AND :t"
        parameters: Raw = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not descending,
            "ConsistentRead": index is None or index.startswith("LSI"),
        }
        if index is not None:
            parameters["IndexName"] = index
        if attributes is not None:
            for position, attribute in enumerate(attributes):
                names[f"#a{position}"] = attribute.attr_name
            parameters["ProjectionExpression"] = ",".join(f"#a{n}" for n in range(len(attributes)))
        elif index is not None and index.startswith("LSI"):
            parameters["Select"] = "ALL_ATTRIBUTES"
        if limit is not None:
            parameters["Limit"] = limit
        if start is not None:
            parameters["ExclusiveStartKey"] = start
        answer = self._call("Query", **parameters)
        return Page(answer.get("Items", []), answer.get("LastEvaluatedKey"))

    def query_all(self, pk: str, **parameters: Unpack[Range]) -> Iterator[Raw]:
        """All items of a Query, page by page; parameters as in :meth:`query`."""
        start = None
        while True:
            page = self.query(pk, start=start, **parameters)
            yield from page.items
            start = page.last_key
            if start is None:
                return

    # -- writes ------------------------------------------------------------------------------------

    def put(self, item: Raw, condition: Condition | None = None) -> Raw | None:
        """PutItem; what was there. Raises ConditionFailed."""
        answer = self._call("PutItem", Item=item, ReturnValues="ALL_OLD", **_conditional(condition))
        old: Raw | None = answer.get("Attributes")
        return old

    def update(self, key: Key, update: Update, *, returning: bool = False) -> Raw:
        """UpdateItem; the whole new item when ``returning``. Raises ConditionFailed."""
        answer = self._call(
            "UpdateItem",
            Key=_key(key),
            ReturnValues="ALL_NEW" if returning else "NONE",
            **_returning_old(update.parameters()),
        )
        attributes: Raw = answer.get("Attributes", {})
        return attributes

    def delete(self, key: Key, condition: Condition | None = None) -> Raw | None:
        """DeleteItem; what was there. Raises ConditionFailed."""
        answer = self._call(
            "DeleteItem", Key=_key(key), ReturnValues="ALL_OLD", **_conditional(condition)
        )
        item: Raw | None = answer.get("Attributes")
        return item

    def batch_write(self, puts: Iterable[Raw] = (), deletes: Iterable[Key] = ()) -> None:
        """BatchWriteItem in chunks of 25 side by side; unprocessed items are sent again with
        back-off."""
        requests = [{"PutRequest": {"Item": item}} for item in puts]
        requests += [{"DeleteRequest": {"Key": _key(key)}} for key in deletes]
        chunks = [
            requests[at : at + BATCH_WRITE_ITEMS]
            for at in range(0, len(requests), BATCH_WRITE_ITEMS)
        ]
        self.parallel([partial(self._batch_write, chunk) for chunk in chunks])

    def transact(self, operations: Sequence[Operation], token: str) -> None:
        """TransactWriteItems: all or nothing, at most 100 operations.

        Args:
            token: makes a repeated call within ten minutes a success that changes nothing (36
                characters at most).

        Raises:
            TransactionFailed: at least one condition did not hold.
        """
        items = [_transaction_item(operation) for operation in operations]
        reasons: list[Raw] = []
        for attempt in range(CONFLICT_ATTEMPTS):
            try:
                self._call("TransactWriteItems", TransactItems=items, ClientRequestToken=token)
                return
            except ClientError as error:
                if failures.code(error) != "TransactionCanceledException":
                    raise
                reasons = cast("list[Raw]", error.response.get("CancellationReasons", []))
                if any(reason.get("Code") == "ValidationError" for reason in reasons):
                    raise failures.too_large() from error
                failed = {
                    position: reason.get("Item")
                    for position, reason in enumerate(reasons)
                    if reason.get("Code") == "ConditionalCheckFailed"
                }
                if failed:
                    raise TransactionFailed(failed) from error
                # What remains is a conflict with another transaction or throttling: both pass.
                back_off(attempt)
        raise failures.busy(reasons)

    # -- calls side by side ------------------------------------------------------------------------

    def parallel(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Runs calls side by side and gives their results in order; they count as one round trip.

        All calls are run to their end before the first failure is raised.
        """
        if len(calls) <= 1 or capacity.in_branch():
            # A branch of a parallel call does not wait for the pool that it runs in.
            return [call() for call in calls]
        measurement = capacity.current()
        with capacity.side_by_side(measurement, len(calls)) as branches:
            futures = [
                self._executor().submit(capacity.run, branch, deadline.carried(call))
                for branch, call in zip(branches[1:], calls[1:], strict=True)
            ]
            try:
                first = capacity.run(branches[0], calls[0])
            finally:
                failed = [future.exception() for future in futures]
        for failure in filter(None, failed):
            raise failure
        return [first, *(future.result() for future in futures)]

    @contextmanager
    def measure(self) -> Iterator[capacity.Measurement]:
        """Counts what this thread and its parallel calls request and consume from here on."""
        with capacity.measure() as measurement:
            yield measurement

    # -- one request -------------------------------------------------------------------------------

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="dynamodb")
            return self._pool

    def _batch_get(self, keys: Sequence[Key]) -> list[Raw]:
        found: list[Raw] = []
        wanted = [_key(key) for key in keys]
        name = settings().table_name
        for attempt in range(BATCH_ATTEMPTS):
            request = {name: {"Keys": wanted, "ConsistentRead": True}}
            answer = self._call("BatchGetItem", RequestItems=request)
            got = answer.get("Responses", {}).get(name, [])
            found += got
            wanted = answer.get("UnprocessedKeys", {}).get(name, {}).get("Keys", [])
            if not wanted:
                return found
            if not got:  # an answer cut at 16 MB made progress; only a throttled one should wait
                back_off(attempt)
        raise errors.RequestLimitExceeded("The table is throttling reads. Try again later.")

    def _batch_write(self, requests: list[Raw]) -> None:
        name = settings().table_name
        for attempt in range(BATCH_ATTEMPTS):
            answer = self._call("BatchWriteItem", RequestItems={name: requests})
            requests = answer.get("UnprocessedItems", {}).get(name, [])
            if not requests:
                return
            back_off(attempt)
        raise errors.RequestLimitExceeded("The table is throttling writes. Try again later.")

    def _call(self, operation: str, **parameters: Any) -> Raw:
        if not operation.startswith(("Batch", "Transact")):
            parameters["TableName"] = settings().table_name
        parameters["ReturnConsumedCapacity"] = "TOTAL"
        if operation not in capacity.READS and settings().collection_sizes:
            parameters["ReturnItemCollectionMetrics"] = "SIZE"
        measurement = capacity.current()
        for attempt in range(CONFLICT_ATTEMPTS):
            try:
                answer: Raw = client().call(operation, parameters)
            except ClientError as error:
                capacity.add(measurement, operation, {})
                # A transaction holds the item at this moment; the call was not executed.
                if failures.code(error) != "TransactionConflictException":
                    raise failures.translated(error) from error
                back_off(attempt)
            except BotoCoreError as error:
                capacity.add(measurement, operation, {})
                raise failures.unreachable(error) from error
            else:
                capacity.add(measurement, operation, answer)
                return answer
        raise failures.busy()


def back_off(attempt: int) -> None:
    """Waits before another attempt, with full jitter: up to 10 ms at first, up to 1 s at last."""
    time.sleep(_random.uniform(0, min(1.0, 0.01 * 2**attempt)))


def _key(key: Key) -> Raw:
    return {"PK": {"S": key.pk}, "SK": {"S": key.sk}}


def _index_keys(index: str | None) -> tuple[str, str]:
    if index is None:
        return "PK", "SK"
    if index.startswith("LSI"):
        return "PK", f"lsi{index[3:]}sk"
    return f"gsi{index[3:]}pk", f"gsi{index[3:]}sk"


def _returning_old(parameters: Raw) -> Raw:
    if "ConditionExpression" in parameters:
        parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return parameters


def _conditional(condition: Condition | None) -> Raw:
    return {} if condition is None else _returning_old(condition.condition_parameters())


def _transaction_item(operation: Operation) -> Raw:
    base: Raw = {"TableName": settings().table_name}
    if isinstance(operation, Put):
        return {"Put": {**base, "Item": operation.item, **_conditional(operation.condition)}}
    if isinstance(operation, Delete):
        return {"Delete": {**base, "Key": _key(operation.key), **_conditional(operation.condition)}}
    if isinstance(operation, Check):
        conditional = _conditional(operation.condition)
        return {"ConditionCheck": {**base, "Key": _key(operation.key), **conditional}}
    parameters = _returning_old(operation.update.parameters())
    return {"Update": {**base, "Key": _key(operation.key), **parameters}}


table = Table()
