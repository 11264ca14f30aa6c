"""All calls of DynamoDB: single items, queries, batches, transactions; with retries and counters.

Items are DynamoDB JSON (``{"PK": {"S": "…"}, …}``). Reads of the table and of local indexes are
strongly consistent; only global indexes can lag. Failures of the service raise errors of
:mod:`mlcore.errors`, unexpected ones botocore's; a failed condition raises ConditionFailed with the
existing item, in a transaction :class:`TransactionFailed`.
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
from mlcore.db import capacity, deadline, failures, lost_answers
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.client import client
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.keys import Key, index_keys, prefix_range
from mlcore.environment import settings

T = TypeVar("T")

BATCH_GET_KEYS = 100
BATCH_WRITE_ITEMS = 25
PARALLEL_CALLS = 16
BATCH_ATTEMPTS = 8
CONFLICT_ATTEMPTS = 12

_random = random.SystemRandom()
"""Not the default generator: its state is the same in all processes started from one snapshot."""


class TransactionFailed(Exception):
    """A transaction was cancelled because conditions did not hold. ``items`` maps the position of
    each operation whose condition failed to the stored item, None if there is none."""

    def __init__(self, items: dict[int, Raw | None]) -> None:
        super().__init__("transaction failed")
        self.items = items


class Page(NamedTuple):
    items: list[Raw]
    last_key: Raw | None
    """Start key of the next page; None for the last page."""


class QueryRange(TypedDict, total=False):
    """The optional parameters of a Query, as :meth:`Table.query` takes them."""

    index: str | None
    prefix: str | None
    between: tuple[str, str] | None
    descending: bool
    limit: int | None
    attributes: Sequence[ItemAttribute[Any]] | None


class Put(NamedTuple):
    item: Raw
    condition: ConditionExpression | None = None


class Delete(NamedTuple):
    key: Key
    condition: ConditionExpression | None = None


class ItemUpdate(NamedTuple):
    """An UpdateItem of a transaction."""

    key: Key
    update: Update


class Check(NamedTuple):
    """A condition on an item that a transaction does not write (ConditionCheck)."""

    key: Key
    condition: ConditionExpression


Operation = Put | Delete | ItemUpdate | Check


def key_of_operation(operation: Operation) -> Key:
    """Returns the key of the item that one operation of a transaction writes or checks."""
    return key_of_item(operation.item) if isinstance(operation, Put) else operation.key


def key_of_item(item: Raw) -> Key:
    """Returns partition key and sort key of an item given as DynamoDB JSON (``{"S": …}``)."""
    return Key(item["PK"]["S"], item["SK"]["S"])


class Table:
    """The DynamoDB table that the environment names, with all calls of it."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    # -- reads -------------------------------------------------------------------------------------

    def get(self, key: Key) -> Raw | None:
        """Reads one item, strongly consistently (GetItem); None if it does not exist."""
        answer = self._call("GetItem", Key=_key(key), ConsistentRead=True)
        item: Raw | None = answer.get("Item")
        return item

    def batch_get(self, keys: Sequence[Key]) -> list[Raw | None]:
        """Reads items (BatchGetItem) in the order of ``keys``, with None for a missing one."""
        distinct = list(dict.fromkeys(keys))
        chunks = [
            distinct[at : at + BATCH_GET_KEYS] for at in range(0, len(distinct), BATCH_GET_KEYS)
        ]
        items_by_key: dict[Key, Raw] = {}
        for items in self.parallel([partial(self._batch_get, chunk) for chunk in chunks]):
            for item in items:
                items_by_key[key_of_item(item)] = item
        return [items_by_key.get(key) for key in keys]

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
        """Sends one Query request and returns its page of at most 1 MB.

        Args:
            pk: value of the partition key: ``PK`` of the table or a local index, ``gsiNpk`` of a
                global index.
            index: ``LSI1`` … ``GSI5``, or None for the table.
            prefix: prefix of the sort key.
            between: inclusive bounds of the sort key, instead of ``prefix``.
            start: ``last_key`` of the page before; None for the first page.
            attributes: attributes to return; None for all (of a global index: only the keys).
        """
        partition, sort = index_keys(index)
        names = {"#p": partition}
        values: Raw = {":p": {"S": pk}}
        condition = "#p=:p"
        if prefix:
            between = prefix_range(prefix)
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

    def query_all(self, pk: str, **parameters: Unpack[QueryRange]) -> Iterator[Raw]:
        """Yields all items of a Query, page by page; parameters as in :meth:`query`."""
        start = None
        while True:
            page = self.query(pk, start=start, **parameters)
            yield from page.items
            start = page.last_key
            if start is None:
                return

    # -- writes ------------------------------------------------------------------------------------

    def put(self, item: Raw, condition: ConditionExpression | None = None) -> Raw | None:
        """Writes an item (PutItem); returns the replaced one, or None. Raises ConditionFailed. If
        the answer of a conditional put is lost, the new item may be returned instead."""
        call = partial(self._call, "PutItem", Item=item, **_replacing(condition))
        answer = lost_answers.execute(call, lost_answers.put_of(item))
        old: Raw | None = answer.get("Attributes")
        return old

    def update(self, key: Key, update: Update, *, returning: bool = False) -> Raw:
        """UpdateItem; returns the new item if ``returning``, else {}. Raises ConditionFailed."""
        call = partial(
            self._call,
            "UpdateItem",
            Key=_key(key),
            ReturnValues="ALL_NEW" if returning else "NONE",
            **_returning_old(update.parameters()),
        )
        answer = lost_answers.execute(call, lost_answers.change_of(update))
        attributes: Raw = answer.get("Attributes", {})
        return attributes

    def delete(self, key: Key, condition: ConditionExpression | None = None) -> Raw | None:
        """Deletes an item (DeleteItem); returns it as it was, or None if there was none or if the
        answer was lost. Raises ConditionFailed."""
        call = partial(self._call, "DeleteItem", Key=_key(key), **_replacing(condition))
        answer = lost_answers.execute(call, lost_answers.is_absent)
        item: Raw | None = answer.get("Attributes")
        return item

    def batch_write(self, puts: Iterable[Raw] = (), deletes: Iterable[Key] = ()) -> None:
        """Writes and deletes items (BatchWriteItem), in parallel calls of 25, with retries."""
        requests = [{"PutRequest": {"Item": item}} for item in puts]
        requests += [{"DeleteRequest": {"Key": _key(key)}} for key in deletes]
        chunks = [
            requests[at : at + BATCH_WRITE_ITEMS]
            for at in range(0, len(requests), BATCH_WRITE_ITEMS)
        ]
        self.parallel([partial(self._batch_write, chunk) for chunk in chunks])

    def transact(self, operations: Sequence[Operation], token: str) -> None:
        """Executes up to 100 operations, all or none (TransactWriteItems). Raises TransactionFailed
        if at least one condition did not hold.

        Args:
            token: idempotency token of at most 36 characters; repeating the call within ten minutes
                succeeds without a change.
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
                if refusal := failures.size_refusal(reasons):
                    raise refusal from error
                failed = {
                    position: reason.get("Item")
                    for position, reason in enumerate(reasons)
                    if reason.get("Code") == "ConditionalCheckFailed"
                }
                if failed:
                    raise TransactionFailed(failed) from error
                # The rest are conflicts with other transactions and throttling: retry.
                back_off(attempt)
        raise failures.busy_error(reasons)

    # -- parallel calls ------------------------------------------------------------------------

    def parallel(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Runs calls in parallel (with an embedded store in turn); returns their results in order.
        Counts only the longest one's round trips; raises the first failure after all have ended.
        Within another parallel call they run in turn, up to a failure, and all trips count."""
        if len(calls) <= 1 or capacity.in_branch():
            # A nested call would wait for the thread pool that it occupies itself.
            return [call() for call in calls]
        measurement = capacity.current()
        if client().is_embedded:
            return capacity.run_in_turn(measurement, calls)
        with capacity.side_by_side(measurement, len(calls)) as branches:
            futures = [
                self._executor().submit(
                    capacity.run_branch, branch, deadline.with_current_deadline(call)
                )
                for branch, call in zip(branches[1:], calls[1:], strict=True)
            ]
            try:
                first = capacity.run_branch(branches[0], calls[0])
            finally:
                failed = [future.exception() for future in futures]
        for failure in filter(None, failed):
            raise failure
        return [first, *(future.result() for future in futures)]

    @contextmanager
    def measure(self) -> Iterator[capacity.Measurement]:
        """Counts the calls and capacity units of this thread and its parallel calls."""
        with capacity.measure() as measurement:
            yield measurement

    # -- one request -------------------------------------------------------------------------------

    def _executor(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="dynamodb")
            return self._pool

    def _batch_get(self, keys: Sequence[Key]) -> list[Raw]:
        items: list[Raw] = []
        wanted = [_key(key) for key in keys]
        name = settings().table_name
        for attempt in range(BATCH_ATTEMPTS):
            request = {name: {"Keys": wanted, "ConsistentRead": True}}
            answer = self._call("BatchGetItem", RequestItems=request)
            got = answer.get("Responses", {}).get(name, [])
            items += got
            wanted = answer.get("UnprocessedKeys", {}).get(name, {}).get("Keys", [])
            if not wanted:
                return items
            if not got:  # throttled; a response cut at 16 MB has items and needs no wait
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
        is_lost = False
        for attempt in range(CONFLICT_ATTEMPTS):
            try:
                answer: Raw = client().call(operation, parameters)
            except (BotoCoreError, ClientError) as error:
                written = failures.may_have_written(error)
                capacity.add_failure(measurement, operation, may_have_written=written)
                if isinstance(error, BotoCoreError):
                    raise failures.unanswered_error(error) from error
                is_lost = failures.mark_lost(error, is_lost=is_lost)
                # A transaction is writing the item; this call was not executed.
                if failures.code(error) != "TransactionConflictException":
                    raise failures.translate(error) from error
                back_off(attempt)
            else:
                capacity.add_call(measurement, operation, answer)
                return answer
        raise failures.busy_error()


def back_off(attempt: int) -> None:
    """Sleeps for a random time before a retry: at most 10 ms at first, doubling up to 1 s."""
    time.sleep(_random.uniform(0, min(1.0, 0.01 * 2**attempt)))


def _key(key: Key) -> Raw:
    return {"PK": {"S": key.pk}, "SK": {"S": key.sk}}


def _returning_old(parameters: Raw) -> Raw:
    if "ConditionExpression" in parameters:
        parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return parameters


def _conditional(condition: ConditionExpression | None) -> Raw:
    return {} if condition is None else _returning_old(condition.condition_parameters())


def _replacing(condition: ConditionExpression | None) -> Raw:
    return {"ReturnValues": "ALL_OLD", **_conditional(condition)}


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
