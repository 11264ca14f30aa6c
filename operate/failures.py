"""Reads the indexer's failure queue and the records that were given up; rebuilds and tells nothing
itself.

Lambda's message holds no record, only where the batch was: a shard of the stream and two sequence
numbers. For a day the stream still has the records. They name experiments, of which a rebuild makes
everything that is derived; and they alone say what webhooks were to hear of and whose files were
to go. After that day every experiment can be rebuilt, but what was to be said nobody knows any
more: so the message stays until somebody has been told.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import boto3
from botocore.exceptions import ClientError

from mlcore.db.keys import experiment_id_of
from mlcore.models.base import Item

RECEIVED_TOGETHER = 10
HIDDEN_SECONDS = 3600
"""For so long a message that was read is not given to another reader."""

_GONE = {
    "TrimmedDataAccessException",
    "ResourceNotFoundException",
    "ExpiredIteratorException",
}


Record = dict[str, Any]


class Failure(NamedTuple):
    """One message of the queue."""

    receipt: str
    records: tuple[Record, ...] | None
    """As the indexer was given them; None if the stream has them no more."""

    @property
    def experiment_ids(self) -> frozenset[str] | None:
        """The experiments that its records are of; None where nobody can tell."""
        if self.records is None:
            return None
        partitions = {Item.of(record["dynamodb"]["Keys"]).PK for record in self.records}
        return frozenset(_experiments(partitions))


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
                yield Failure(message["ReceiptHandle"], self._records(batch))

    def done(self, failure: Failure) -> None:
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=failure.receipt)

    def _records(self, batch: dict[str, Any]) -> tuple[Record, ...] | None:
        found: list[Record] = []
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
                records = answer["Records"]
                found += [record for record in records if _number(record) <= last]
                if records and _number(records[-1]) >= last:
                    break
                iterator = answer.get("NextShardIterator")
        except ClientError as error:
            if error.response["Error"]["Code"] in _GONE:
                return None
            raise
        return tuple(found)


def _number(record: Record) -> int:
    return int(record["dynamodb"]["SequenceNumber"])


def _experiments(partitions: Iterable[str]) -> Iterator[str]:
    for partition in partitions:
        # What the indexer follows in other partitions is of no experiment.
        with contextlib.suppress(ValueError):
            yield experiment_id_of(partition)
