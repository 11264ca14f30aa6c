"""Reads the indexer's failure queue and names the experiments whose records were given up; rebuilds
nothing itself.

Lambda's message holds no record, only where the batch was: a shard of the stream and two sequence
numbers. For a day the stream still has the records, which name their experiments. After that nobody
can tell, and every experiment is to be rebuilt. Records are not handed to the indexer again: they
would fail as before, or come out of order. A rebuild makes everything that they stand for.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import ClientError

from mlcore.db.keys import experiment_id_of

RECEIVED_TOGETHER = 10
HIDDEN_SECONDS = 3600
"""For so long a message that was read is not given to another reader."""

_GONE = {
    "TrimmedDataAccessException",
    "ResourceNotFoundException",
    "ExpiredIteratorException",
}


class Failure(NamedTuple):
    """One message of the queue."""

    receipt: str
    experiment_ids: frozenset[str] | None
    """The experiments that its records are of; None if the stream has them no more."""


class FailureQueue:
    """The queue that the event source mapping of the indexer writes to."""

    def __init__(self, url: str, sqs: Any = None, streams: Any = None) -> None:
        self._url = url
        self._sqs = sqs or boto3.client("sqs")
        self._streams = streams or boto3.client("dynamodbstreams")

    def failures(self) -> Iterator[Failure]:
        """Every message that is there; each stays until :meth:`done`."""
        while True:
            answer = self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=RECEIVED_TOGETHER,
                VisibilityTimeout=HIDDEN_SECONDS,
                WaitTimeSeconds=1,
            )
            messages = answer.get("Messages", [])
            if not messages:
                return
            for message in messages:
                batch = json.loads(message["Body"])["DDBStreamBatchInfo"]
                yield Failure(message["ReceiptHandle"], self._experiment_ids(batch))

    def done(self, failure: Failure) -> None:
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=failure.receipt)

    def _experiment_ids(self, batch: dict[str, Any]) -> frozenset[str] | None:
        found: set[str] = set()
        last = int(batch["endSequenceNumber"])
        try:
            answer = self._streams.get_shard_iterator(
                StreamArn=batch["streamArn"],
                ShardId=batch["shardId"],
                ShardIteratorType="AT_SEQUENCE_NUMBER",
                SequenceNumber=batch["startSequenceNumber"],
            )
            iterator = answer.get("ShardIterator")
            while iterator is not None:
                answer = self._streams.get_records(ShardIterator=iterator)
                records = [record["dynamodb"] for record in answer["Records"]]
                wanted = [one for one in records if int(one["SequenceNumber"]) <= last]
                found.update(one["Keys"]["PK"]["S"] for one in wanted)
                if records and int(records[-1]["SequenceNumber"]) >= last:
                    break
                iterator = answer.get("NextShardIterator")
        except ClientError as error:
            if error.response["Error"]["Code"] in _GONE:
                return None
            raise
        return frozenset(_experiments(found))


def _experiments(partitions: Iterable[str]) -> Iterator[str]:
    for partition in partitions:
        # What the indexer follows in other partitions is of no experiment.
        with contextlib.suppress(ValueError):
            yield experiment_id_of(partition)
