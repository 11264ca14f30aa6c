"""The failure queue names the experiments whose records were given up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from indexer import app, webhook_events
from indexer.lifecycle import expiry
from operate.failure_queue import FailureQueue
from operate.replay import replay, replay_to_landing


class Sqs:
    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.left = {f"r{n}": json.dumps(body) for n, body in enumerate(bodies)}
        self._shown: set[str] = set()

    def receive_message(self, **_: Any) -> dict[str, Any]:
        fresh = [handle for handle in self.left if handle not in self._shown][:1]
        self._shown.update(fresh)
        return {
            "Messages": [{"ReceiptHandle": handle, "Body": self.left[handle]} for handle in fresh]
        }

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        del self.left[ReceiptHandle]


class Streams:
    """A shard whose records 3 to 8 are still there, two to a page."""

    def get_shard_iterator(self, *, SequenceNumber: str, **_: Any) -> dict[str, str]:  # noqa: N803
        if int(SequenceNumber) < 3:
            code = "TrimmedDataAccessException"
            raise ClientError({"Error": {"Code": code, "Message": ""}}, "GetShardIterator")
        return {"ShardIterator": SequenceNumber}

    def get_records(self, *, ShardIterator: str) -> dict[str, Any]:  # noqa: N803
        first = int(ShardIterator)
        pks = {n: f"EXP#{n}" if n % 2 else f"RUN#{n}" for n in range(first, min(first + 2, 9))}
        records = [
            {"dynamodb": {"SequenceNumber": str(n), "Keys": {"PK": {"S": pk}}}}
            for n, pk in pks.items()
        ]
        return {"Records": records, "NextShardIterator": str(first + 2) if first < 7 else None}


def batch(start: int, end: int) -> dict[str, Any]:
    info = {
        "shardId": "s",
        "streamArn": "a",
        "startSequenceNumber": str(start),
        "endSequenceNumber": str(end),
    }
    return {"DDBStreamBatchInfo": info}


def test_a_failure_names_its_experiments_while_the_stream_has_the_records() -> None:
    sqs = Sqs(batch(4, 7), batch(1, 7), batch(8, 8))
    queue = FailureQueue("url", sqs, Streams())
    first, second, third = queue.failures()
    assert first.experiment_ids == frozenset(("5", "7"))
    assert second.experiment_ids is None
    assert third.experiment_ids == frozenset()
    assert len(sqs.left) == 3
    queue.done(first)
    assert len(sqs.left) == 2


@pytest.mark.parametrize(
    ("batches", "broken", "rebuilt", "expected", "left"),
    [
        ([batch(4, 5), batch(5, 7)], "", ["5", "7"], ["45", "567"], 0),
        ([batch(4, 5), batch(5, 7)], "7", ["5", "7"], ["45"], 1),
        ([batch(4, 5), batch(5, 7)], "45", ["5", "7"], ["45", "567"], 1),
        ([batch(4, 5), batch(1, 7)], "", ["1", "2", "5"], ["45"], 1),
        ([batch(4, 5), batch(1, 7)], "2", ["1", "2", "5"], ["45"], 1),
        ([], "", [], [], 0),
    ],
)
def test_a_message_goes_when_its_experiments_are_rebuilt_and_all_is_told(
    batches: list[dict[str, Any]], broken: str, rebuilt: list[str], expected: list[str], left: int
) -> None:
    """One whose records are gone stays: what they had to say nobody knows."""
    sqs = Sqs(*batches)
    seen: list[str] = []

    def rebuild(experiment_id: str) -> bool:
        seen.append(experiment_id)
        return experiment_id != broken

    announced: list[str] = []

    def tell(records: Sequence[dict[str, Any]]) -> bool:
        announced.append("".join(record["dynamodb"]["SequenceNumber"] for record in records))
        return announced[-1] != broken

    queue = FailureQueue("url", sqs, Streams())
    ended_well = replay(queue, rebuild, lambda: ["1", "2", "5"], tell)
    assert sorted(seen) == rebuilt
    assert announced == expected
    assert ended_well is (left == 0)
    assert len(sqs.left) == left


def test_records_tell_webhooks_and_the_remover(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = {"type": {"S": "run"}, "event": {"S": "{}"}}
    model = {"type": {"S": "registered_model"}, "event": {"S": "{}"}}
    records = [
        {"dynamodb": {"OldImage": gone}},
        {"dynamodb": {"NewImage": model}},
        {"dynamodb": {"NewImage": model, "OldImage": model}},
        {"dynamodb": {"NewImage": gone | {"type": {"S": "run_tag"}}, "OldImage": gone}},
    ]
    announced: list[Any] = []
    expired: list[Any] = []
    monkeypatch.setattr(webhook_events, "project", announced.extend)
    monkeypatch.setattr(expiry, "project", expired.extend)
    app.run_side_effects(records)
    assert announced == [records[1]["dynamodb"]]
    assert expired == [records[0]["dynamodb"]]
    assert app.queues_of(records) == ["WEBHOOK_QUEUE_URL", "FILE_REMOVAL_QUEUE_URL"]
    assert app.queues_of(records[2:]) == []


def test_what_the_lander_gave_up_is_landed_again() -> None:
    """Each message once; one whose records are gone stays, and the command fails."""
    sqs = Sqs(batch(4, 5), batch(1, 7), batch(8, 8))
    landed: list[str] = []

    def land(records: Sequence[dict[str, Any]]) -> None:
        landed.append("".join(record["dynamodb"]["SequenceNumber"] for record in records))

    assert not replay_to_landing(FailureQueue("url", sqs, Streams()), land)
    assert landed == ["45", "8"]
    assert len(sqs.left) == 1
    assert replay_to_landing(FailureQueue("url", Sqs(), Streams()), land)


def test_a_failure_to_land_keeps_the_message() -> None:
    sqs = Sqs(batch(4, 5))

    def land(_: Sequence[dict[str, Any]]) -> None:
        raise OSError("the bucket is away")

    with pytest.raises(OSError, match="away"):
        replay_to_landing(FailureQueue("url", sqs, Streams()), land)
    assert len(sqs.left) == 1


def test_records_are_as_lambda_delivers_them() -> None:
    """boto3 gives bytes where Lambda's event has base64, which the functions read."""

    class Binary(Streams):
        def get_records(self, *, ShardIterator: str) -> dict[str, Any]:  # noqa: N803
            change = {
                "SequenceNumber": "4",
                "NewImage": {"points": {"M": {"a": {"B": b"\x00\xff"}}}},
            }
            return {"Records": [{"dynamodb": change}], "NextShardIterator": None}

    [failure] = FailureQueue("url", Sqs(batch(4, 4)), Binary()).failures()
    assert failure.records is not None
    assert failure.records[0]["dynamodb"]["NewImage"] == {"points": {"M": {"a": {"B": "AP8="}}}}
