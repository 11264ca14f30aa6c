"""The way of requests to DynamoDB and back, with its client played by the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from mlcore import errors
from mlcore.db import table as table_module
from mlcore.db.expression import ConditionExpression, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import Delete, ItemUpdate, Put, Table, TransactionFailed
from mlcore.environment import settings
from mlcore.models.base import Item
from mlcore.models.runs import Run

TABLE = "mlflow-under-test"


class Played:
    """Answers each call with the next of ``answers``; exceptions are raised."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def call(self, operation: str, parameters: dict[str, Any]) -> Any:
        self.calls.append((operation, parameters))
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    played = Played()
    monkeypatch.setattr(table_module, "client", lambda: played)
    monkeypatch.setattr(table_module, "back_off", lambda _attempt: None)
    monkeypatch.setenv("TABLE_NAME", TABLE)
    settings.cache_clear()
    yield played
    settings.cache_clear()


def refused(code: str, message: str = "", **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": message}, **more}
    return ClientError(response, "Operation")


def item(n: int, **more: Any) -> dict[str, Any]:
    return {"PK": {"S": "p"}, "SK": {"S": str(n)}, **more}


KEY = Key("p", "0")


def test_sizes_are_asked_of_writes_where_wanted(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def size_requests() -> list[bool]:
        played.calls.clear()
        table = Table()
        table.get(KEY)
        table.put(item(0))
        table.batch_write([item(0)])
        table.transact([Put(item(0))], "token")
        return ["ReturnItemCollectionMetrics" in parameters for _, parameters in played.calls]

    assert size_requests() == [False] * 4
    monkeypatch.setenv("COLLECTION_SIZES", "true")
    settings.cache_clear()
    assert size_requests() == [False, True, True, True]


def test_every_read_is_consistent_but_those_of_global_indexes(played: Played) -> None:
    table = Table()
    table.get(KEY)
    table.batch_get([KEY])
    table.query("p")
    table.query("p", index="LSI2", prefix="R#")
    table.query("p", index="GSI2")
    (_, get), (_, batch), (_, query), (_, local), (_, wide) = played.calls
    assert get["ConsistentRead"]
    assert batch["RequestItems"][TABLE]["ConsistentRead"]
    assert query["ConsistentRead"]
    assert local["ConsistentRead"]
    assert local["Select"] == "ALL_ATTRIBUTES"
    assert local["ExpressionAttributeNames"] == {"#p": "PK", "#s": "lsi2sk"}
    assert not wide["ConsistentRead"]
    assert wide["ExpressionAttributeNames"] == {"#p": "gsi2pk"}
    assert all(call["ReturnConsumedCapacity"] == "TOTAL" for _, call in played.calls)


def test_batch_get_keeps_order_and_asks_once_for_each_key(played: Played) -> None:
    keys = [Key("p", str(n % 120)) for n in range(130)]
    first = [item(n) for n in range(99, -1, -1)]
    played.answers = [
        {"Responses": {TABLE: first[:60]}, "UnprocessedKeys": {TABLE: {"Keys": ["rest"]}}},
        {"Responses": {}, "UnprocessedKeys": {TABLE: {"Keys": ["rest"]}}},
        {"Responses": {TABLE: first[60:]}},
        {"Responses": {TABLE: [item(110)]}},
    ]
    table = Table()
    table.parallel = lambda calls: [call() for call in calls]
    rows = table.batch_get(keys)
    assert [None if row is None else int(row["SK"]["S"]) for row in rows] == [
        n if n < 100 or n == 110 else None for n in [*range(120), *range(10)]
    ]
    assert [len(call["RequestItems"][TABLE]["Keys"]) for _, call in played.calls] == [100, 1, 1, 20]


def test_batch_write_sends_again_what_was_not_processed(played: Played) -> None:
    played.answers = [{"UnprocessedItems": {TABLE: ["one"]}}, {}, {}]
    table = Table()
    table.parallel = lambda calls: [call() for call in calls]
    table.batch_write([item(n) for n in range(26)], [KEY])
    sent = [call["RequestItems"][TABLE] for _, call in played.calls]
    assert [len(requests) for requests in sent] == [25, 1, 2]
    assert sent[1] == ["one"]
    assert "DeleteRequest" in sent[2][1]


def test_throttling_without_end_is_429(played: Played) -> None:
    played.answers = [{"UnprocessedItems": {TABLE: ["one"]}}] * 100
    with pytest.raises(errors.RequestLimitExceeded):
        Table().batch_write([item(1)])
    played.answers = [{"UnprocessedKeys": {TABLE: {"Keys": ["one"]}}}] * 100
    with pytest.raises(errors.RequestLimitExceeded):
        Table().batch_get([KEY])


FAILURES = [
    (refused("ProvisionedThroughputExceededException"), errors.RequestLimitExceeded),
    (refused("ThrottlingException"), errors.RequestLimitExceeded),
    (refused("InternalServerError"), errors.TemporarilyUnavailable),
    (refused("ItemCollectionSizeLimitExceededException"), errors.BadRequest),
    (
        refused("ValidationException", "Item size to update has exceeded the maximum allowed size"),
        errors.InvalidParameterValue,
    ),
    (ReadTimeoutError(endpoint_url="http://x"), errors.TemporarilyUnavailable),
]


@pytest.mark.parametrize(("failure", "expected"), FAILURES)
def test_failures_of_the_service(
    played: Played, failure: Exception, expected: type[Exception]
) -> None:
    played.answers = [failure]
    with pytest.raises(expected):
        Table().put(item(1))


def test_a_defect_stays_what_it_is(played: Played) -> None:
    played.answers = [refused("ValidationException", "Invalid UpdateExpression")]
    with pytest.raises(ClientError):
        Table().put(item(1))


def test_a_failed_condition_tells_the_item(played: Played) -> None:
    condition = ConditionExpression()
    condition.require_absent(Item.PK)
    played.answers = [refused("ConditionalCheckFailedException", Item=item(7))]
    with pytest.raises(ConditionFailed) as caught:
        Table().put(item(1), condition)
    assert caught.value.item == item(7)
    (_, call) = played.calls[0]
    assert call["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


def test_a_call_waits_for_a_transaction_on_its_item(played: Played) -> None:
    played.answers = [refused("TransactionConflictException")] * 3
    Table().delete(KEY)
    assert len(played.calls) == 4
    played.answers = [refused("TransactionConflictException")] * 100
    with pytest.raises(errors.RequestLimitExceeded):
        Table().delete(KEY)


def cancelled(*codes: str, **items: Any) -> ClientError:
    reasons = [
        {"Code": code, **({"Item": items[f"at{n}"]} if f"at{n}" in items else {})}
        for n, code in enumerate(codes)
    ]
    return refused("TransactionCanceledException", CancellationReasons=reasons)


def operations() -> list[Put | Delete | ItemUpdate]:
    update = Update()
    update.set(Run.status, "b")
    return [Put(item(1)), Delete(KEY), ItemUpdate(KEY, update)]


def test_transactions(played: Played) -> None:
    table = Table()
    played.answers = [cancelled("TransactionConflict", "None", "ThrottlingError"), {}]
    table.transact(operations(), "token")
    assert [call["ClientRequestToken"] for _, call in played.calls] == ["token", "token"]
    assert [next(iter(transact_item)) for transact_item in played.calls[0][1]["TransactItems"]] == [
        "Put",
        "Delete",
        "Update",
    ]
    played.answers = [cancelled("None", "ConditionalCheckFailed", "None", at1=item(3))]
    with pytest.raises(TransactionFailed) as caught:
        table.transact(operations(), "token")
    assert caught.value.items == {1: item(3)}
    played.answers = [cancelled("ValidationError", "None", "None")]
    with pytest.raises(errors.InvalidParameterValue):
        table.transact(operations(), "token")
    played.answers = [cancelled("ItemCollectionSizeLimitExceeded", "None", "TransactionConflict")]
    with pytest.raises(errors.BadRequest, match="10 GB"):
        table.transact(operations(), "token")
    played.answers = [cancelled("TransactionConflict")] * 100
    with pytest.raises(errors.RequestLimitExceeded):
        table.transact(operations(), "token")
