"""The stream as it is read from the engine's file, beside the stream as the engine tells it."""

import itertools
import json
from typing import Any

import pytest

from local.definitions import Admission
from local.engine import stream_file
from local.engine.stream_file import StreamFile
from local.events.filters import admissions, compile_filters
from local.template import read

from .conftest import ROOT, TABLE


def whole(client: Any, engine: Any, limit: int) -> list[Any]:
    """All records, page by page."""
    shards = client.describe_stream(StreamArn=engine.stream)["StreamDescription"]["Shards"]
    (shard,) = [one["ShardId"] for one in shards]
    iterator = client.get_shard_iterator(
        StreamArn=engine.stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    found: list[Any] = []
    while True:
        page = client.get_records(ShardIterator=iterator, Limit=limit)
        if not page["Records"]:
            return [shard, *found]
        assert len(page["Records"]) <= limit
        found += page["Records"]
        iterator = page["NextShardIterator"]


def written(engine: Any) -> None:
    for number in range(7):
        engine.put(f"{number}", type=("run", "rank", "experiment")[number % 3], body="é")
    engine.put("0", type="run", body="changed")
    for name in ("0", "1"):
        engine.dynamodb.delete_item(TableName=TABLE, Key={"PK": {"S": "P"}, "SK": {"S": name}})


@pytest.mark.parametrize("limit", [3, 1000])
def test_it_says_what_the_engine_says(engine: Any, limit: int) -> None:
    written(engine)
    said = whole(engine.client("dynamodbstreams"), engine, limit)
    read = whole(StreamFile(engine.file.path, TABLE), engine, limit)
    for record in said[1:]:
        del record["awsRegion"], record["dynamodb"]["SizeBytes"]
        created = record["dynamodb"]["ApproximateCreationDateTime"]
        record["dynamodb"]["ApproximateCreationDateTime"] = created.timestamp()
    assert read == said


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
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(engine)
    for said in ({"outside": "1"}, {"outside": "2"}, {"body": "é"}):
        engine.put("8", type="run", **said)
    engine.put("9", type="rank")
    patterns = [json.dumps(pattern) for pattern in NAMED]
    matches = compile_filters(patterns)
    _, *everything = whole(StreamFile(engine.file.path, TABLE), engine, 1000)
    expected = [one for one in everything if matches(one)]
    assert len(expected) == 6
    client = StreamFile(engine.file.path, TABLE, admissions(patterns))
    for limit, looked_at in itertools.product((1, 2, 1000), (1, 3, 20_000)):
        monkeypatch.setattr(stream_file, "LOOKED_AT", looked_at)
        found, place, ends = [], "0", False
        while not ends:
            page = client.get_records(ShardIterator=place, Limit=limit)
            told = [one for one in page["Records"] if "eventName" in one]
            assert len(told) <= limit
            assert int(page["NextShardIterator"]) > int(place)
            found, place, ends = found + told, page["NextShardIterator"], page["Ends"]
        assert found == expected
        # Also the place of what is passed over is told, and nothing of it again.
        assert place == everything[-1]["dynamodb"]["SequenceNumber"]
        assert client.get_records(ShardIterator=place, Limit=limit)["Records"] == []


def test_a_long_page_ends_early_and_says_so(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_file, "PAGE_CHARACTERS", 2_500)
    for number in range(4):
        engine.put(str(number), type="run", body="x" * 1000)
    client = StreamFile(engine.file.path, TABLE)
    page = client.get_records(ShardIterator="0", Limit=1000)
    assert (len(page["Records"]), page["Ends"]) == (3, False)
    rest = client.get_records(ShardIterator=page["NextShardIterator"], Limit=1000)
    assert (len(rest["Records"]), rest["Ends"]) == (1, True)


def test_the_latest_and_what_comes_after_a_number(engine: Any) -> None:
    client = StreamFile(engine.file.path, TABLE)
    assert client.get_shard_iterator(ShardIteratorType="LATEST") == {"ShardIterator": "0"}
    written(engine)
    latest = client.get_shard_iterator(ShardIteratorType="LATEST")["ShardIterator"]
    assert client.get_records(ShardIterator=latest, Limit=9)["Records"] == []
    after = client.get_shard_iterator(
        ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber="8"
    )["ShardIterator"]
    records = client.get_records(ShardIterator=after, Limit=9)["Records"]
    assert [one["dynamodb"]["SequenceNumber"] for one in records] == ["9", "10"]


def test_what_patterns_let_through_is_told() -> None:
    for mapping in read(ROOT / "template.yaml", TABLE, "us-east-1").mappings:
        told = admissions(mapping.patterns)
        assert told, mapping.name
        assert len(told) == len(mapping.patterns)
    assert admissions([]) is None
    assert admissions([json.dumps({"eventName": ["INSERT"]})]) is None
    prefixed = {"dynamodb": {"NewImage": {"type": {"S": [{"prefix": "run"}]}}}}
    assert admissions([json.dumps(prefixed)]) is None
    assert admissions(map(json.dumps, NAMED)) == (
        Admission(frozenset({"INSERT"}), "NewImage", frozenset({"run"}), ()),
        Admission(frozenset({"REMOVE"}), "OldImage", frozenset({"rank", "experiment"}), ()),
        Admission(None, "NewImage", frozenset({"run"}), (("outside", "S"),)),
    )
