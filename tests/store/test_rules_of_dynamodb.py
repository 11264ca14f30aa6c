"""Rules of DynamoDB that the store keeps and dynoxide does not: no comparison shows them."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.store.store import Store, endpoint_of, table_path
from local.store.stream import StreamReader
from tests.store.conftest import TABLE, OpenStore

KEY = {"PK": {"S": "p"}, "SK": {"S": "s"}}


def refused(opened: OpenStore, operation: str, **parameters: Any) -> str:
    with pytest.raises(ClientError) as caught:
        opened.client.call(operation, parameters)
    return caught.value.response["Error"]["Code"]


def update(opened: OpenStore, expression: str, **values: Any) -> Any:
    given = {"ExpressionAttributeValues": values} if values else {}
    parameters = {"TableName": TABLE, "Key": KEY, "UpdateExpression": expression, **given}
    return opened.client.call("UpdateItem", {**parameters, "ReturnValues": "ALL_NEW"})


def test_nothing_is_removed_below_what_is_not_there(opened: OpenStore) -> None:
    """ "The document path provided in the update expression is invalid for update"; only the last
    part of a path may be missing."""
    base = {"TableName": TABLE, "Key": KEY}
    assert refused(opened, "UpdateItem", **base, UpdateExpression="REMOVE m.a") == (
        "ValidationException"
    )
    update(opened, "SET m = :m", **{":m": {"M": {"b": {"S": "c"}}}})
    answer = update(opened, "REMOVE m.a")
    assert answer["Attributes"]["m"] == {"M": {"b": {"S": "c"}}}


def test_what_is_set_behind_the_end_of_a_list_is_appended(opened: OpenStore) -> None:
    update(opened, "SET l = :l", **{":l": {"L": [{"S": "a"}]}})
    answer = update(opened, "SET l[7] = :b", **{":b": {"S": "b"}})
    assert answer["Attributes"]["l"] == {"L": [{"S": "a"}, {"S": "b"}]}


def test_a_change_that_changes_nothing_has_no_record(opened: OpenStore) -> None:
    item = {**KEY, "s": {"SS": ["a", "b"]}, "n": {"N": "1.0"}}
    same = {**KEY, "n": {"N": "1"}, "s": {"SS": ["b", "a"]}}
    for each in (item, same):
        opened.client.call("PutItem", {"TableName": TABLE, "Item": each})
    writes = [{"PutRequest": {"Item": same}}]
    opened.client.call("BatchWriteItem", {"RequestItems": {TABLE: writes}})
    update(opened, "SET n = :n", **{":n": {"N": "1"}})
    reader = StreamReader(table_path(opened.folder, TABLE), TABLE)
    records = reader.get_records(ShardIterator="0", Limit=100)["Records"]
    reader.close()
    assert [record["eventName"] for record in records] == ["INSERT"]


def test_a_token_stands_for_one_transaction(opened: OpenStore) -> None:
    def transact(number: int) -> Any:
        added = {"UpdateExpression": "ADD n :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}
        key = {**KEY, "SK": {"S": f"{number}"}}
        operations = [{"Update": {"TableName": TABLE, "Key": key, **added}}]
        return opened.client.call(
            "TransactWriteItems", {"TransactItems": operations, "ClientRequestToken": "one"}
        )

    for _ in range(3):
        transact(1)
    stored = opened.client.call("GetItem", {"TableName": TABLE, "Key": {**KEY, "SK": {"S": "1"}}})
    assert stored["Item"]["n"] == {"N": "1"}
    with pytest.raises(ClientError) as caught:
        transact(2)
    assert caught.value.response["Error"]["Code"] == "IdempotentParameterMismatchException"


def test_no_addition_of_many_writers_is_lost(opened: OpenStore) -> None:
    """Of threads of one client and of clients of one file."""
    times, added = 200, {":n": {"N": "1"}}
    clients = [opened.client, Store(endpoint_of(opened.folder))]
    parameters = {"TableName": TABLE, "Key": KEY, "UpdateExpression": "ADD n :n"}

    def add(client: Store) -> None:
        for _ in range(times):
            client.call("UpdateItem", {**parameters, "ExpressionAttributeValues": added})

    threads = [threading.Thread(target=add, args=(client,)) for client in clients * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clients[1].close()
    item = opened.client.call("GetItem", {"TableName": TABLE, "Key": KEY})["Item"]
    assert item["n"] == {"N": f"{times * len(threads)}"}


def test_no_file_but_that_of_a_table_is_opened(opened: OpenStore) -> None:
    for name in ("../other", "a/b", "", "x" * 256):
        assert refused(opened, "GetItem", TableName=name, Key=KEY) == "ValidationException"
    assert refused(opened, "GetItem", TableName="absent", Key=KEY) == "ResourceNotFoundException"
    lone = {**KEY, "SK": {"S": "\ud800"}}
    assert refused(opened, "GetItem", TableName=TABLE, Key=lone) == "ValidationException"
    assert not (opened.folder / "absent.sqlite").exists()
