"""Random programs of requests have the same answers, items, errors, capacity units and stream in
the store and in dynoxide. What dynoxide does otherwise than DynamoDB is in known_differences.py.

    STORE_REQUESTS=1000000 STORE_SEED=7 pytest tests/store/test_against_dynoxide.py --timeout 0
"""

from __future__ import annotations

import os
import random
from uuid import uuid4

import pytest

from local.store.store import Store, endpoint_of
from mlcore.db.client import transport
from mlcore.db.transport import DYNAMODB
from tests.engines import Engine, memory_folder, table_definition
from tests.store.comparison import Comparison
from tests.store.operations import Raw

REQUESTS = int(os.environ.get("STORE_REQUESTS", "5000"))
SEED = int(os.environ.get("STORE_SEED", "0")) or random.SystemRandom().randrange(10**9)
PROGRAM_REQUESTS = 2500
"""Requests of one program, which has a table of its own."""

BIG = ("x" * 300_000, "y" * 150_000, "z" * 2000)


@pytest.fixture
def engine(dynoxide: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynoxide.endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", dynoxide.endpoint)
    return dynoxide


@pytest.mark.parametrize("program", range(-(-REQUESTS // PROGRAM_REQUESTS)))
def test_random_programs(engine: Engine, program: int) -> None:
    table = f"mlflow-{uuid4().hex}"
    client = transport("dynamodb", DYNAMODB)
    with memory_folder() as folder:
        store = Store(endpoint_of(folder))
        try:
            for each in (client, store):
                each.call("CreateTable", table_definition(table))
            comparison = Comparison(store, folder, client, table)
            comparison.run(SEED + program, PROGRAM_REQUESTS)
            comparison.compare_streams()
            assert comparison.answers["ConditionalCheckFailedException"] > 100
            assert comparison.answers["TransactWriteItems"] > 50
            assert comparison.answers["UpdateItem"] > 100
            client.call("DeleteTable", {"TableName": table})
        finally:
            store.close()
            client.close()


def test_pages_of_large_and_of_many_items(engine: Engine) -> None:
    table = f"mlflow-{uuid4().hex}"
    client = transport("dynamodb", DYNAMODB)
    with memory_folder() as folder:
        store = Store(endpoint_of(folder))
        try:
            for each in (client, store):
                each.call("CreateTable", table_definition(table))
            comparison = Comparison(store, folder, client, table)
            for request in _large_items(table):
                comparison.compare(*request)
            for query in _queries(table):
                comparison.compare("Query", query)
            keys = [_key("large", f"{n:04d}") for n in range(90)]
            wanted = {table: {"Keys": keys, "ConsistentRead": True}}
            comparison.compare("BatchGetItem", {"RequestItems": wanted})
        finally:
            store.close()
            client.close()


def _key(partition: str, sort: str) -> Raw:
    return {"PK": {"S": partition}, "SK": {"S": sort}}


def _large_items(table: str) -> list[tuple[str, Raw]]:
    rng = random.Random(SEED)
    puts = [
        {**_key("large", f"{n:04d}"), "lsi1sk": {"S": f"{n % 7}"}, "s": {"S": rng.choice(BIG)}}
        for n in range(90)
    ]
    puts += [
        {**_key("many", f"{n:05d}"), "lsi1sk": {"S": f"{n:05d}" * rng.randrange(1, 40)}}
        for n in range(9000)
    ]
    requests = [("PutItem", {"TableName": table, "Item": item}) for item in puts[:90]]
    for at in range(90, len(puts), 25):
        writes = [{"PutRequest": {"Item": item}} for item in puts[at : at + 25]]
        requests.append(("BatchWriteItem", {"RequestItems": {table: writes}}))
    return requests


def _queries(table: str) -> list[Raw]:
    queries = []
    for partition in ("large", "many"):
        base: Raw = {
            "TableName": table,
            "KeyConditionExpression": "PK = :p",
            "ExpressionAttributeValues": {":p": {"S": partition}},
            "ConsistentRead": True,
        }
        for more in (
            {},
            {"ScanIndexForward": False},
            {"Limit": 500},
            {"IndexName": "LSI1"},
            {"IndexName": "LSI1", "ScanIndexForward": False, "Limit": 2000},
            {"IndexName": "LSI1", "Select": "ALL_ATTRIBUTES"},
            {"ProjectionExpression": "SK"},
        ):
            queries.append({**base, **more, "ReturnConsumedCapacity": "TOTAL"})
    return queries
