"""The store refuses what DynamoDB refuses, also where dynoxide and ExtendDB do not: a program that
works on a laptop works in AWS. Sources: the developer guide's pages "Expression operators and
functions", "Reserved words", "Query filter expressions" and "Constraints"."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.store import pages
from local.store.reserved_words import RESERVED_WORDS
from mlcore.db.client import transport
from mlcore.db.transport import DYNAMODB
from tests.engines import Engine, create_table
from tests.store.conftest import TABLE, OpenStore

KEY = {"PK": {"S": "p"}, "SK": {"S": "s"}}
X, Y, ONE = {"S": "x"}, {"S": "y"}, {"N": "1"}


def code(opened: OpenStore, operation: str, **parameters: Any) -> str:
    """The code of the error; the operation if there is none."""
    try:
        opened.client.call(operation, {"TableName": TABLE, **parameters})
    except ClientError as error:
        return error.response["Error"]["Code"]
    return operation


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("a = a", {}),
        ("#a <> a", {}),
        ("contains(m.b[1].a, m.b[1].#a)", {}),
        ("begins_with(a, #a)", {}),
        ("attribute_exists(:x)", {":x": X}),
        ("attribute_not_exists(:x)", {":x": X}),
        ("attribute_exists(size(a))", {}),
        ("attribute_type(a, b)", {}),
        ("attribute_type(a, :x)", {":x": X}),
        ("attribute_type(a, :x)", {":x": ONE}),
        ("((a = :x))", {":x": X}),
        ("(((a = :x) AND b = :x))", {":x": X}),
        ("NOT ((a = :x))", {":x": X}),
        ("(" * 1200 + "a = :x" + ")" * 1200, {":x": X}),
        ("NOT (a = :x AND " * 150 + "a = :x" + ")" * 150, {":x": X}),
        ("a BETWEEN :y AND :x", {":x": X, ":y": Y}),
        ("a BETWEEN :one AND :x", {":x": X, ":one": ONE}),
        ("a IN (" + ", ".join([":x"] * 101) + ")", {":x": X}),
        ("size(:one) = :one", {":one": ONE}),
        ("attribute_exists(status)", {}),
        ("attribute_exists(a.Name)", {}),
        ("attribute_exists(\u00e4)", {}),
        ("attribute_exists(a[\u00b2])", {}),
        ("attribute_exists(a)", {":none": None}),
    ],
)
def test_a_condition_is_refused(opened: OpenStore, condition: str, values: dict[str, Any]) -> None:
    request: dict[str, Any] = {"Item": KEY, "ConditionExpression": condition}
    if "#a" in condition:
        request["ExpressionAttributeNames"] = {"#a": "a"}
    if values:
        given = {name: value for name, value in values.items() if value}
        request["ExpressionAttributeValues"] = given
    assert code(opened, "PutItem", **request) == "ValidationException"


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("(NOT a = :x)", {":x": X}),
        ("((NOT a = :x) AND (NOT b = :x))", {":x": X}),
        ("NOT a IN (" + ", ".join([":x"] * 100) + ")", {":x": X}),
        ("NOT size(n) > :one", {":one": ONE}),
        ("attribute_not_exists(namely)", {}),
    ],
)
def test_a_condition_is_taken(opened: OpenStore, condition: str, values: dict[str, Any]) -> None:
    request: dict[str, Any] = {"Item": {**KEY, "n": ONE}, "ConditionExpression": condition}
    if values:
        request["ExpressionAttributeValues"] = values
    opened.client.call("PutItem", {"TableName": TABLE, "Item": {**KEY, "n": ONE}})
    assert code(opened, "PutItem", **request) == "PutItem"


def test_a_batch_of_what_is_no_write_is_refused(opened: OpenStore) -> None:
    both = {"PutRequest": {"Item": KEY}, "DeleteRequest": {"Key": KEY}}
    for write in ({}, both, {"Put": {}}):
        with pytest.raises(ClientError, match="datatype"):
            opened.client.call("BatchWriteItem", {"RequestItems": {TABLE: [write]}})


def test_operators_are_counted_as_the_documentation_counts(opened: OpenStore) -> None:
    """ "SET a = :val1 + :val2 + :val3 contains two operators"."""
    assignments = ", ".join(f"q{n} = :x" for n in range(301))
    sums = ", ".join(f"q{n} = :x + :x" for n in range(150))
    for expression, wanted in (
        (assignments, "UpdateItem"),
        (sums, "UpdateItem"),
        (", ".join(f"{n} = :x + :x" for n in [f"q{n}" for n in range(230)]), "UpdateItem"),
        (", ".join(f"z{n}=:x+:x" for n in range(301)), "ValidationException"),
    ):
        given = {"Key": KEY, "ExpressionAttributeValues": {":x": ONE}}
        assert code(opened, "UpdateItem", UpdateExpression=f"SET {expression}", **given) == wanted


def test_numbers_have_38_digits_and_are_added_exactly(opened: OpenStore) -> None:
    def added(start: str, amount: str) -> str:
        opened.client.call("PutItem", {"TableName": TABLE, "Item": {**KEY, "n": {"N": start}}})
        try:
            answer = opened.client.call(
                "UpdateItem",
                {
                    "TableName": TABLE,
                    "Key": KEY,
                    "UpdateExpression": "ADD n :n",
                    "ExpressionAttributeValues": {":n": {"N": amount}},
                    "ReturnValues": "UPDATED_NEW",
                },
            )
        except ClientError as error:
            return error.response["Error"]["Code"]
        number: str = answer["Attributes"]["n"]["N"]
        return number

    assert added("0.1", "1e28") == "1" + "0" * 28 + ".1"
    assert added("9" * 38, "-0.5") == "ValidationException"
    assert added("9" * 38, "1") == "1" + "0" * 38
    assert added("1e125", "1e-130") == "ValidationException"
    assert added("9.9e125", "9.9e125") == "ValidationException"
    for number in ("1e99999999", "1e-99999999", "0." + "9" * 500, "\uff11", "1_0"):
        assert code(opened, "PutItem", Item={**KEY, "n": {"N": number}}) == "ValidationException"


def test_an_emptied_set_in_a_list_leaves_other_positions(opened: OpenStore) -> None:
    item = {**KEY, "l": {"L": [{"SS": ["a"]}, X, Y]}}
    opened.client.call("PutItem", {"TableName": TABLE, "Item": item})
    answer = opened.client.call(
        "UpdateItem",
        {
            "TableName": TABLE,
            "Key": KEY,
            "UpdateExpression": "DELETE l[0] :s SET l[1] = :x",
            "ExpressionAttributeValues": {":s": {"SS": ["a"]}, ":x": ONE},
            "ReturnValues": "ALL_NEW",
        },
    )
    assert answer["Attributes"]["l"] == {"L": [ONE, Y]}


def test_the_reserved_words_are_those_of_an_engine(
    dynoxide: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynoxide.endpoint)
    table = create_table(dynoxide.endpoint)
    with contextlib.closing(transport("dynamodb", DYNAMODB)) as engine:
        for word in [*RESERVED_WORDS, "identifier", "run", "sk"]:
            request = {"TableName": table, "Key": KEY, "ProjectionExpression": word.lower()}
            if word in RESERVED_WORDS:
                with pytest.raises(ClientError, match="Invalid ProjectionExpression"):
                    engine.call("GetItem", request)
            else:
                engine.call("GetItem", request)
        engine.call("DeleteTable", {"TableName": table})


def test_a_query_is_refused(opened: OpenStore) -> None:
    """Filters on the queried keys, and start keys outside the range."""
    query = {"KeyConditionExpression": "PK = :p AND SK BETWEEN :b AND :c"}
    values = {":p": {"S": "p"}, ":b": {"S": "b"}, ":c": {"S": "c"}}
    refused: tuple[dict[str, Any], ...] = (
        {"FilterExpression": "attribute_exists(PK)"},
        {"FilterExpression": "NOT SK = :b"},
        *(
            {"ExclusiveStartKey": {"PK": {"S": pk}, "SK": {"S": sk}}}
            for pk, sk in (("p", "a"), ("p", "d"), ("q", "b"))
        ),
    )
    for more in refused:
        request: dict[str, Any] = {**query, "ExpressionAttributeValues": values, **more}
        assert code(opened, "Query", **request) == "ValidationException"
    start = {"ExclusiveStartKey": {"PK": {"S": "p"}, "SK": {"S": "b"}}}
    request = {**query, "ExpressionAttributeValues": values, **start}
    assert code(opened, "Query", **request) == "Query"


def test_a_filter_of_an_index_sees_its_entries_and_costs_their_size(opened: OpenStore) -> None:
    item = {**KEY, "a": X, "lsi1sk": {"S": "l"}, "gsi1pk": {"S": "p"}, "gsi1sk": {"S": "s"}}
    item["large"] = {"S": "x" * 50_000}
    opened.client.call("PutItem", {"TableName": TABLE, "Item": item})
    for index, partition in (("LSI1", "PK"), ("GSI1", "gsi1pk")):
        for name, count in (("a", 0), ("SK", 1)):
            answer = opened.client.call(
                "Query",
                {
                    "TableName": TABLE,
                    "IndexName": index,
                    "KeyConditionExpression": f"{partition} = :p",
                    "FilterExpression": f"attribute_exists({name})",
                    "ExpressionAttributeValues": {":p": {"S": "p"}},
                    "ReturnConsumedCapacity": "TOTAL",
                },
            )
            assert (answer["Count"], answer["ScannedCount"]) == (count, 1)
            assert answer["ConsumedCapacity"]["CapacityUnits"] == 0.5


def test_a_page_of_large_items_reads_little_more_than_it_answers(
    opened: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def counted(text: str) -> Any:
        read.append(len(text))
        return json.loads(text)

    small, large = {"S": "x"}, {"S": "x" * 350_000}
    for at in range(120):
        item = {**KEY, "SK": {"S": f"{at:03}"}, "v": small if at < 60 else large}
        opened.client.call("PutItem", {"TableName": TABLE, "Item": item})
    monkeypatch.setattr(pages, "decode", counted)
    query = {
        "TableName": TABLE,
        "KeyConditionExpression": "PK = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
    }
    answer = opened.client.call("Query", query)
    assert answer["Count"] == 62
    assert sum(read) < 2 * pages.PAGE_BYTES
    read.clear()
    after = opened.client.call("Query", {**query, "ExclusiveStartKey": answer["LastEvaluatedKey"]})
    assert after["Count"] == 2
    assert sum(read) < (pages.FIRST_ROWS + 1) * 400 * 1024
