"""The stream as it is read from the engine's file, beside the stream as the engine tells it."""

import json
from typing import Any

import pytest

from local.engine import stream_file
from local.engine.stream_file import StreamFile
from local.events.filters import compile_filters, types_of
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


def test_of_other_types_only_the_place_is_told(engine: Any) -> None:
    written(engine)
    all_of_it = whole(StreamFile(engine.file.path, TABLE), engine, 4)
    some = whole(StreamFile(engine.file.path, TABLE, {"run", "experiment"}), engine, 4)
    assert len(some) == len(all_of_it) == 11
    for whole_record, told in zip(all_of_it[1:], some[1:], strict=True):
        images = whole_record["dynamodb"]
        image = images.get("NewImage") or images["OldImage"]
        if image["type"]["S"] == "rank":
            assert told == {"dynamodb": {"SequenceNumber": images["SequenceNumber"]}}
        else:
            assert told == whole_record


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


def test_the_types_that_patterns_let_through() -> None:
    for mapping in read(ROOT / "template.yaml", TABLE, "us-east-1").mappings:
        types = types_of(mapping.patterns)
        assert types, mapping.name
        matches = compile_filters(mapping.patterns)
        for event, image in (
            ("INSERT", "NewImage"),
            ("MODIFY", "NewImage"),
            ("REMOVE", "OldImage"),
        ):
            item = {"type": {"S": "rank"}, "lsi1sk": {"S": "x"}, "outside": {"BOOL": True}}
            record = {"eventName": event, "dynamodb": {image: item}}
            assert not matches(record), "a type that no pattern names passes"
    assert types_of([]) is None
    assert types_of([json.dumps({"eventName": ["INSERT"]})]) is None
    prefixed = {"dynamodb": {"NewImage": {"type": {"S": [{"prefix": "run"}]}}}}
    assert types_of([json.dumps(prefixed)]) is None
