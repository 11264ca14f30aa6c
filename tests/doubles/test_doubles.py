"""The doubles do what they promise: a test that trusts a broken double proves nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import botocore.config
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError

from tests.doubles.faulty import DATA, Fault
from tests.doubles.fixtures import Doubles
from tests.engines import REGION, Engine, client, create_table

pytestmark = pytest.mark.contract


def key(sk: str) -> dict[str, Any]:
    return {"PK": {"S": "p"}, "SK": {"S": sk}}


def indexed(sk: str, position: str) -> dict[str, Any]:
    return {**key(sk), "gsi1pk": {"S": "x"}, "gsi1sk": {"S": position}}


def gsi1(engine: Any, table: str, **more: Any) -> list[str]:
    query = engine.query(
        TableName=table,
        IndexName="GSI1",
        KeyConditionExpression="#p = :x",
        ExpressionAttributeNames={"#p": "gsi1pk"},
        ExpressionAttributeValues={":x": {"S": "x"}},
        **more,
    )
    return [item["SK"]["S"] for item in query["Items"]]


def test_indexes_stand_still_until_the_lag_ends(doubles: Doubles) -> None:
    db, table = client(doubles.endpoint), doubles.table
    db.put_item(TableName=table, Item=indexed("a", "1"))
    assert gsi1(db, table) == []
    doubles.lagging.seconds = 0
    assert gsi1(db, table) == ["a"]
    db.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": table, "Item": indexed("b", "2")}},
            {"Delete": {"TableName": table, "Key": key("a")}},
        ]
    )
    assert gsi1(db, table) == ["b"]
    doubles.lagging.seconds = float("inf")
    assert gsi1(db, table) == []


def test_a_lagging_index_answers_as_the_engine_once_it_has_caught_up(doubles: Doubles) -> None:
    db, table = client(doubles.endpoint), doubles.table
    for number in range(9):
        db.put_item(TableName=table, Item=indexed(f"s{number}", f"k{number % 4}"))
    db.update_item(
        TableName=table,
        Key=key("s3"),
        UpdateExpression="SET gsi1sk = :new",
        ExpressionAttributeValues={":new": {"S": "k9"}},
    )
    db.batch_write_item(RequestItems={table: [{"DeleteRequest": {"Key": key("s4")}}]})
    doubles.lagging.seconds = 0
    conditions = [
        "gsi1pk = :x",
        "gsi1pk = :x AND begins_with(gsi1sk, :k)",
        "gsi1pk = :x AND gsi1sk BETWEEN :low AND :high",
        "(gsi1pk = :x) AND (gsi1sk > :low)",
    ]
    values = {":x": {"S": "x"}, ":k": {"S": "k"}, ":low": {"S": "k1"}, ":high": {"S": "k2"}}
    for condition in conditions:
        for forward in (True, False):
            used = {name: value for name, value in values.items() if name in condition}
            pages = []
            for engine in (db, doubles.direct):
                start: dict[str, Any] = {}
                results: list[str] = []
                while True:
                    page = engine.query(
                        TableName=table,
                        IndexName="GSI1",
                        KeyConditionExpression=condition,
                        ExpressionAttributeValues=used,
                        ScanIndexForward=forward,
                        Limit=3,
                        **start,
                    )
                    results += [item["SK"]["S"] for item in page["Items"]]
                    if "LastEvaluatedKey" not in page:
                        break
                    start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
                pages.append(results)
            assert pages[0] == pages[1], (condition, forward)


@pytest.mark.parametrize("fault", list(Fault))
def test_a_fault_strikes_the_chosen_call_only(doubles: Doubles, fault: Fault) -> None:
    db, table = client(doubles.endpoint), doubles.table
    doubles.faulty.arm(fault, 2)

    def add(sk: str) -> None:
        db.update_item(
            TableName=table,
            Key=key(sk),
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    add("a")
    broken = fault not in {Fault.REPEATED}
    if broken:
        with pytest.raises((ClientError, ConnectionClosedError, HTTPClientError)):
            add("b")
    else:
        add("b")
    assert doubles.faulty.fired
    doubles.faulty.heal()
    add("c")
    stored = {
        item["SK"]["S"]: int(item["n"]["N"])
        for item in doubles.direct.scan(TableName=table)["Items"]
    }
    executed = {
        Fault.ANSWER_LOST: 1,
        Fault.ANSWER_500: 1,
        Fault.DEAD_AFTER: 1,
        Fault.REPEATED: 2,
    }
    assert stored == {"a": 1, "c": 1} | ({"b": executed[fault]} if fault in executed else {})


def test_a_dead_process_executes_nothing_more(doubles: Doubles) -> None:
    db, table = client(doubles.endpoint), doubles.table
    doubles.faulty.arm(Fault.DEAD, 1)
    for sk in "abc":
        with pytest.raises((ConnectionClosedError, HTTPClientError)):
            db.put_item(TableName=table, Item=key(sk))
    assert doubles.direct.scan(TableName=table)["Count"] == 0


def test_half_of_a_batch_comes_back(doubles: Doubles) -> None:
    db, table = client(doubles.endpoint), doubles.table
    doubles.faulty.arm(Fault.UNPROCESSED, 1)
    requests = [{"PutRequest": {"Item": key(sk)}} for sk in "abcd"]
    answer = db.batch_write_item(RequestItems={table: requests})
    assert answer["UnprocessedItems"] == {table: requests[2:]}
    doubles.faulty.arm(Fault.UNPROCESSED, 1)
    read = db.batch_get_item(RequestItems={table: {"Keys": [key("a"), key("b")]}})
    assert [item["SK"]["S"] for item in read["Responses"][table]] == ["a"]
    assert read["UnprocessedKeys"][table]["Keys"] == [key("b")]


def test_a_conflict_names_its_reasons(doubles: Doubles) -> None:
    db, table = client(doubles.endpoint), doubles.table
    doubles.faulty.arm(Fault.CONFLICT, 1)
    puts = [{"Put": {"TableName": table, "Item": key(sk)}} for sk in "ab"]
    with pytest.raises(db.exceptions.TransactionCanceledException) as caught:
        db.transact_write_items(TransactItems=puts)
    codes = [reason["Code"] for reason in caught.value.response["CancellationReasons"]]
    assert codes == ["TransactionConflict", "None"]


def test_boto_retries_a_lost_answer(doubles: Doubles) -> None:
    """The client's own retry turns a lost answer into a repeated call, as in AWS."""
    db = boto3.client(
        "dynamodb",
        endpoint_url=doubles.endpoint,
        region_name=REGION,
        config=botocore.config.Config(retries={"total_max_attempts": 3, "mode": "standard"}),
    )
    doubles.faulty.arm(Fault.ANSWER_LOST, 1, DATA)
    with pytest.raises(db.exceptions.ConditionalCheckFailedException):
        db.put_item(
            TableName=doubles.table, Item=key("a"), ConditionExpression="attribute_not_exists(PK)"
        )
    assert doubles.faulty.seen == 2


def test_counting(doubles: Doubles) -> None:
    db, table = client(doubles.endpoint), doubles.table
    with doubles.counting.measure() as cost:
        db.put_item(TableName=table, Item={**key("a"), "v": {"S": "x" * 3000}})
        db.get_item(TableName=table, Key=key("a"), ConsistentRead=True)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: db.get_item(TableName=table, Key=key("a")), range(4)))
    assert cost.requests == {"PutItem": 1, "GetItem": 5}
    assert cost.write_units == 3
    assert cost.read_units == 1 + 4 * 0.5
    assert 3 <= cost.round_trips <= 6
    assert len(cost.stale_reads) == 4
    with doubles.counting.measure() as nothing:
        pass
    assert nothing.requests == {}
    assert nothing.round_trips == 0


def test_the_second_engine_serves_the_same_table(extenddb: Engine) -> None:
    db = client(extenddb.endpoint)
    table = create_table(extenddb.endpoint)
    db.put_item(TableName=table, Item={**key("a"), "lsi1sk": {"S": "1"}})
    query = db.query(
        TableName=table,
        IndexName="LSI1",
        KeyConditionExpression="PK = :p",
        ExpressionAttributeValues={":p": {"S": "p"}},
        ConsistentRead=True,
    )
    assert query["Count"] == 1
