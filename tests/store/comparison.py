"""Runs the same requests against the store and against an engine, and finds what differs."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from local.store.store import Store, table_path
from local.store.stream import StreamReader
from mlcore.db.client import transport
from mlcore.db.transport import DYNAMODB, Protocol, Transport
from tests.store.known_differences import is_known
from tests.store.operations import Operations, Raw

PAGES = 100
SETS = ("SS", "NS", "BS")


class Difference(Exception):
    """The store answered otherwise than the engine."""


class Comparison:
    """The same table in the store and in an engine."""

    def __init__(self, store: Store, folder: Path, engine: Transport, table: str) -> None:
        self._store = store
        self._file = table_path(folder, table)
        self._engine = engine
        self._table = table
        self.answers: Counter[str] = Counter()
        """How many answers were of which kind; the code of an error, else the operation."""

    def run(self, seed: int, count: int) -> None:
        """Sends ``count`` random requests to both.

        Raises:
            Difference: two answers differ.
        """
        operations = Operations(seed, self._table)
        for number in range(count):
            operation, parameters = operations.draw()
            self.compare(operation, parameters, f"seed {seed}, request {number}")

    def compare(self, operation: str, parameters: Raw, where: str = "") -> None:
        """Sends a request to both, and for the pages that follow.

        Raises:
            Difference: two answers differ.
        """
        for _ in range(PAGES):
            theirs = _answer(self._engine, operation, parameters)
            ours = _answer(self._store, operation, parameters)
            self.answers[theirs.get("error") or operation] += 1
            if ours != theirs and not is_known(operation, parameters, ours, theirs):
                raise Difference(
                    f"{where}: {operation}\n{_shown(parameters)}\n"
                    f"store:  {_shown(ours)}\nengine: {_shown(theirs)}"
                )
            start = theirs.get("LastEvaluatedKey")
            if not start:
                return
            parameters = {**parameters, "ExclusiveStartKey": start}

    def compare_streams(self, since: str = "0") -> str:
        """Compares the records of each key, without those that change nothing, which AWS does not
        write. Returns the position of the store's last record.

        Raises:
            Difference: they differ.
        """
        reader = StreamReader(self._file, self._table)
        try:
            ours, last = _records_of_store(reader, since)
        finally:
            reader.close()
        theirs = [record for record in _records_of_engine(self._table) if record[2] != record[3]]
        for record in ours:
            if record[2] == record[3]:
                raise Difference(f"a record without a change: {_shown(record)}")
        by_key = _by_key(ours), _by_key(theirs)
        for key in {*by_key[0], *by_key[1]}:
            if by_key[0].get(key) != by_key[1].get(key):
                raise Difference(f"the streams differ about {key}")
        return last


_Record = tuple[tuple[str, str], str, Any, Any]


def _records_of_store(reader: StreamReader, since: str) -> tuple[list[_Record], str]:
    records: list[_Record] = []
    while True:
        page = reader.get_records(ShardIterator=since, Limit=1000)
        records += map(_record, page["Records"])
        since = page["NextShardIterator"]
        if page["Ends"]:
            return records, since


def _records_of_engine(table: str) -> list[_Record]:
    """All records of an engine's table."""
    streams = transport("dynamodb", Protocol("DynamoDBStreams_20120810."))
    described = transport("dynamodb", DYNAMODB)
    try:
        arn = described.call("DescribeTable", {"TableName": table})["Table"]["LatestStreamArn"]
        shards = streams.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
        records: list[_Record] = []
        for shard in shards:
            iterator = streams.call(
                "GetShardIterator",
                {
                    "StreamArn": arn,
                    "ShardId": shard["ShardId"],
                    "ShardIteratorType": "TRIM_HORIZON",
                },
            )["ShardIterator"]
            while iterator:
                page = streams.call("GetRecords", {"ShardIterator": iterator, "Limit": 1000})
                if not page["Records"]:
                    break
                records += map(_record, page["Records"])
                iterator = page["NextShardIterator"]
        return records
    finally:
        streams.close()
        described.close()


def _record(record: Raw) -> _Record:
    about = record["dynamodb"]
    key = about["Keys"]["PK"]["S"], about["Keys"]["SK"]["S"]
    images = [_comparable(about.get(image)) for image in ("OldImage", "NewImage")]
    return key, record["eventName"], images[0], images[1]


def _by_key(records: list[_Record]) -> dict[tuple[str, str], list[_Record]]:
    results: dict[tuple[str, str], list[_Record]] = {}
    for record in records:
        results.setdefault(record[0], []).append(record)
    return results


def _answer(client: Any, operation: str, parameters: Raw) -> Raw:
    try:
        answer = client.call(operation, copy.deepcopy(parameters))
    except ClientError as failure:
        response: Any = failure.response
        return {
            "error": response["Error"]["Code"],
            # The layer tells an item that is too large by this word (mlcore/db/failures.py).
            "is_about_size": response["Error"]["Code"] == "ValidationException"
            and "item size" in response["Error"]["Message"].lower(),
            "Item": _comparable(response.get("Item")),
            "reasons": [
                (reason.get("Code"), _comparable(reason.get("Item")))
                for reason in response.get("CancellationReasons", ())
            ],
        }
    answer = {
        name: value
        for name, value in answer.items()
        if value not in ({}, []) or name in ("Items", "Item", "Responses")
    }
    if operation in ("BatchGetItem", "Scan"):
        _sort_items(answer)
    comparable: Raw = _comparable(answer)
    return comparable


def _sort_items(answer: Raw) -> None:
    lists = [*answer.get("Responses", {}).values(), answer.get("Items", [])]
    for items in lists:
        items.sort(key=lambda item: json.dumps(_comparable(item), sort_keys=True))


def _comparable(value: Any) -> Any:
    """A value in which sets have one order."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in SETS:
            ((kind, members),) = value.items()
            return {kind: sorted(members)} if isinstance(members, list) else value
        return {name: _comparable(inner) for name, inner in value.items()}
    return [_comparable(inner) for inner in value] if isinstance(value, list) else value


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return re.sub(r"(\w)\1{49,}", lambda match: f"({len(match[0])} letters)", text)
