"""SQLite seeks by an index in every statement, and never reads the whole table or sorts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from local.store import pages
from tests.store.conftest import TABLE, OpenStore

ALLOWED = re.compile(
    r"^(SEARCH (items|i|stream|tokens) USING (COVERING )?(INDEX|INTEGER PRIMARY KEY|PRIMARY KEY).*"
    r"|SCAN \(subquery.*|SCAN k|CO-ROUTINE.*|SCAN \d+ CONSTANT ROWS?|SCAN CONSTANT ROW"
    r"|MATERIALIZE.*)$"
)

KEY = {"PK": {"S": "p"}, "SK": {"S": "s"}}
OTHER = {"PK": {"S": "p"}, "SK": {"S": "t"}}


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "GetItem", {"Key": KEY}
    yield "PutItem", {"Item": {**KEY, "lsi1sk": {"S": "x"}}}
    update = {"UpdateExpression": "SET a = :a", "ExpressionAttributeValues": {":a": {"S": "b"}}}
    yield "UpdateItem", {"Key": KEY, **update}
    yield "DeleteItem", {"Key": KEY}
    yield "BatchGetItem", {"RequestItems": {TABLE: {"Keys": [KEY, OTHER]}}}
    puts = [{"PutRequest": {"Item": key}} for key in (KEY, OTHER)]
    yield "BatchWriteItem", {"RequestItems": {TABLE: puts}}
    writes = [{"Delete": {"TableName": TABLE, "Key": key}} for key in (KEY, OTHER)]
    yield "TransactWriteItems", {"TransactItems": writes, "ClientRequestToken": "t"}
    for index, partition, sort in (
        (None, "PK", "SK"),
        ("LSI1", "PK", "lsi1sk"),
        ("GSI1", "gsi1pk", "gsi1sk"),
    ):
        for condition in ("", f" AND {sort} BETWEEN :p AND :q", f" AND begins_with({sort}, :q)"):
            for forward in (True, False):
                names = {":p": {"S": "a"}, ":q": {"S": "b"}}
                used = {name: value for name, value in names.items() if name in condition}
                query: dict[str, Any] = {
                    "KeyConditionExpression": f"{partition} = :p{condition}",
                    "ExpressionAttributeValues": {":p": names[":p"], **used},
                    "ScanIndexForward": forward,
                }
                start = {**KEY, partition: {"S": "a"}, sort: {"S": "b"}}
                for more in ({}, {"ExclusiveStartKey": start}):
                    yield "Query", {**query, **more, **({"IndexName": index} if index else {})}
                if index == "LSI1":
                    yield "Query", {**query, "IndexName": index, "Select": "ALL_ATTRIBUTES"}


def test_every_statement_seeks(opened: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    database = opened.table().database
    monkeypatch.setattr(pages, "FIRST_ROWS", 1)
    monkeypatch.setattr(pages, "FIRST_KEYS", 1)
    for at in range(4):
        item = {"PK": {"S": "a"}, "SK": {"S": f"b{at}"}, "lsi1sk": {"S": f"b{at}"}}
        item |= {"gsi1pk": {"S": "a"}, "gsi1sk": {"S": f"b{at}"}}
        opened.client.call("PutItem", {"TableName": TABLE, "Item": item})
    statements: set[str] = set()
    connection = database._take()
    connection.set_trace_callback(statements.add)
    database._idle.clear()
    database._idle.append(connection)
    for operation, parameters in requests():
        named = {} if "Items" in str([*parameters]) else {"TableName": TABLE}
        opened.client.call("PutItem", {"TableName": TABLE, "Item": KEY})
        opened.client.call(operation, {**named, **parameters})
    connection.set_trace_callback(None)
    explained = 0
    for statement in statements:
        if not re.match(r"(SELECT|UPDATE|DELETE|INSERT)", statement):
            continue
        explained += 1
        for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall():
            assert ALLOWED.match(row[3]), f"{row[3]}\n{statement}"
            # Lists of the keys of an index read no row of the table.
            is_alone = "NULL AS size" in statement and row[3].startswith("SEARCH")
            assert not is_alone or "COVERING" in row[3], f"{row[3]}\n{statement}"
    assert explained > 30
    assert any("upto" in statement for statement in statements)
    assert any("NULL AS size" in statement for statement in statements)
