"""The stream as it is read from the table's file."""

import itertools
import json
from typing import Any

import pytest

from local.events.filter_patterns import compile_filters, record_requirements
from local.store import stream
from local.store.stream import StreamReader
from local.template import read
from local.template_definitions import RecordRequirement

from .conftest import ROOT, TABLE, OpenTable


def whole(client: Any, opened: OpenTable, limit: int) -> list[Any]:
    """All records, page by page."""
    shards = client.describe_stream(StreamArn=opened.stream)["StreamDescription"]["Shards"]
    (shard,) = [description["ShardId"] for description in shards]
    iterator = client.get_shard_iterator(
        StreamArn=opened.stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    results: list[Any] = []
    while True:
        page = client.get_records(ShardIterator=iterator, Limit=limit)
        if not page["Records"]:
            return [shard, *results]
        assert len(page["Records"]) <= limit
        results += page["Records"]
        iterator = page["NextShardIterator"]


def written(opened: OpenTable) -> None:
    for number in range(7):
        opened.put(f"{number}", type=("run", "rank", "experiment")[number % 3], body="é")
    opened.put("0", type="run", body="changed")
    for name in ("0", "1"):
        opened.dynamodb.delete_item(TableName=TABLE, Key={"PK": {"S": "P"}, "SK": {"S": name}})


@pytest.mark.parametrize("limit", [3, 1000])
def test_every_change_is_a_record(opened: OpenTable, limit: int) -> None:
    written(opened)
    shard, *records = whole(opened.reader(), opened, limit)
    assert shard == f"shardId-00000001-{TABLE}"
    assert [int(record["dynamodb"]["SequenceNumber"]) for record in records] == list(range(1, 11))
    events = [record["eventName"] for record in records]
    assert events == ["INSERT"] * 7 + ["MODIFY"] + ["REMOVE"] * 2
    changed = records[7]["dynamodb"]
    key = {"PK": {"S": "P"}, "SK": {"S": "0"}}
    assert changed["Keys"] == key
    assert changed["OldImage"] == {**key, "type": {"S": "run"}, "body": {"S": "é"}}
    assert changed["NewImage"] == {**key, "type": {"S": "run"}, "body": {"S": "changed"}}
    assert "NewImage" not in records[8]["dynamodb"]
    assert "OldImage" not in records[0]["dynamodb"]


NAMED = [
    {"eventName": ["INSERT"], "dynamodb": {"NewImage": {"type": {"S": ["run"]}}}},
    {"eventName": ["REMOVE"], "dynamodb": {"OldImage": {"type": {"S": ["rank", "experiment"]}}}},
    {
        "dynamodb": {
            "NewImage": {"type": {"S": ["run"]}, "outside": {"S": [{"exists": True}]}},
        }
    },
]


def test_what_no_filter_lets_through_is_not_told(
    opened: OpenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(opened)
    for fields in ({"outside": "1"}, {"outside": "2"}, {"body": "é"}):
        opened.put("8", type="run", **fields)
    opened.put("9", type="rank")
    patterns = [json.dumps(pattern) for pattern in NAMED]
    matches = compile_filters(patterns)
    _, *everything = whole(StreamReader(opened.file.path, TABLE), opened, 1000)
    expected = [record for record in everything if matches(record)]
    assert len(expected) == 6
    client = StreamReader(opened.file.path, TABLE, record_requirements(patterns))
    for limit, looked_at in itertools.product((1, 2, 1000), (1, 3, 20_000)):
        monkeypatch.setattr(stream, "SCANNED_RECORDS", looked_at)
        seen, position, ends = [], "0", False
        while not ends:
            page = client.get_records(ShardIterator=position, Limit=limit)
            records = [record for record in page["Records"] if "eventName" in record]
            assert len(records) <= limit
            assert int(page["NextShardIterator"]) > int(position)
            seen, position, ends = seen + records, page["NextShardIterator"], page["Ends"]
        assert seen == expected
        # Also the place of what is passed over is told, and nothing of it again.
        assert position == everything[-1]["dynamodb"]["SequenceNumber"]
        assert client.get_records(ShardIterator=position, Limit=limit)["Records"] == []


def test_a_long_page_ends_early_and_says_so(
    opened: OpenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PAGE_CHARACTERS", 2_500)
    monkeypatch.setattr(stream, "STATEMENT_RECORDS", 1)
    for number in range(4):
        opened.put(str(number), type="run", body="x" * 1000)
    client = StreamReader(opened.file.path, TABLE)
    page = client.get_records(ShardIterator="0", Limit=1000)
    assert (len(page["Records"]), page["Ends"]) == (3, False)
    rest = client.get_records(ShardIterator=page["NextShardIterator"], Limit=1000)
    assert (len(rest["Records"]), rest["Ends"]) == (1, True)


def test_the_latest_and_what_comes_after_a_number(opened: OpenTable) -> None:
    client = StreamReader(opened.file.path, TABLE)
    assert client.get_shard_iterator(ShardIteratorType="LATEST") == {"ShardIterator": "0"}
    written(opened)
    latest = client.get_shard_iterator(ShardIteratorType="LATEST")["ShardIterator"]
    assert client.get_records(ShardIterator=latest, Limit=9)["Records"] == []
    after = client.get_shard_iterator(
        ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber="8"
    )["ShardIterator"]
    records = client.get_records(ShardIterator=after, Limit=9)["Records"]
    assert [record["dynamodb"]["SequenceNumber"] for record in records] == ["9", "10"]


def test_what_patterns_let_through_is_told() -> None:
    for mapping in read(ROOT / "template.yaml", TABLE, "us-east-1").mappings:
        requirements = record_requirements(mapping.patterns)
        assert requirements, mapping.name
        assert len(requirements) == len(mapping.patterns)
    assert record_requirements([]) is None
    assert record_requirements([json.dumps({"eventName": ["INSERT"]})]) is None
    prefixed = {"dynamodb": {"NewImage": {"type": {"S": [{"prefix": "run"}]}}}}
    assert record_requirements([json.dumps(prefixed)]) is None
    assert record_requirements(map(json.dumps, NAMED)) == (
        RecordRequirement(frozenset({"INSERT"}), "NewImage", frozenset({"run"}), ()),
        RecordRequirement(frozenset({"REMOVE"}), "OldImage", frozenset({"rank", "experiment"}), ()),
        RecordRequirement(None, "NewImage", frozenset({"run"}), (("outside", "S"),)),
    )


def test_who_removed_an_expired_item_is_told(opened: OpenTable) -> None:
    """As DynamoDB tells it: the lander keeps the rows of what expired."""
    for name, end in (("past", 1), ("future", 4_000_000_000)):
        opened.dynamodb.put_item(
            TableName=TABLE,
            Item={
                "PK": {"S": "P"},
                "SK": {"S": name},
                "type": {"S": "trace"},
                "ttl": {"N": str(end)},
            },
        )
        opened.dynamodb.delete_item(TableName=TABLE, Key={"PK": {"S": "P"}, "SK": {"S": name}})
    with_identity = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    client = StreamReader(opened.file.path, TABLE)
    _, *records = whole(client, opened, 100)
    client.close()
    removers = {
        record["dynamodb"]["Keys"]["SK"]["S"]: record.get("userIdentity")
        for record in records
        if record["eventName"] == "REMOVE"
    }
    assert removers == {"past": with_identity, "future": None}
