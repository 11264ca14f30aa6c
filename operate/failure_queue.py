"""Reads the failure queue of the indexer or of the lander (which writes changes for the system
tables), and fetches the records of its messages from the table's stream.

Lambda's message names only a batch: a shard of the stream and two sequence numbers. The stream
keeps the records for a day. From the records follow the experiments to rebuild, the webhooks to
call and the files to delete. After that day only a rebuild of all experiments is possible; webhooks
and file removals are lost, so the message stays in the queue until an operator has seen it.
"""

from __future__ import annotations

import contextlib
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from mlcore.db.keys import experiment_id_of
from mlcore.models.base import Item

RECEIVED_TOGETHER = 10
HIDDEN_SECONDS = 3600
"""Seconds for which a message that was read stays hidden from other readers."""

_RECORDS_GONE_CODES = {
    "TrimmedDataAccessException",
    "ResourceNotFoundException",
    "ExpiredIteratorException",
}


Record = dict[str, Any]


class FailedBatch(NamedTuple):
    """One message of the failure queue, with the records of its batch."""

    receipt: str
    records: tuple[Record, ...] | None
    """The batch's records; None if the stream no longer has them."""

    @property
    def experiment_ids(self) -> frozenset[str] | None:
        """The ids of the experiments to which the batch's records belong; None if the stream no
        longer has the records."""
        if self.records is None:
            return None
        partitions = {Item.of(record["dynamodb"]["Keys"]).PK for record in self.records}
        return frozenset(_experiments(partitions))


class FailureQueue:
    """The failure queue of an event source mapping that reads the table's stream."""

    def __init__(self, url: str, sqs: Any = None, streams: Any = None) -> None:
        self._url = url
        import boto3  # noqa: PLC0415 - a quarter of a second, for who works on AWS

        self._sqs = sqs or boto3.client("sqs")
        self._streams = streams or boto3.client("dynamodbstreams")

    def failures(self) -> Iterator[FailedBatch]:
        """Yields the failed batch of each message of the SQS queue that no consumer has received in
        the last :data:`HIDDEN_SECONDS`. A message stays until its batch is passed to
        :meth:`done`."""
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
                yield FailedBatch(message["ReceiptHandle"], self._records(batch))

    def done(self, failure: FailedBatch) -> None:
        """Deletes from the failure queue the message of a batch that :meth:`failures` yielded."""
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=failure.receipt)

    def _records(self, batch: dict[str, Any]) -> tuple[Record, ...] | None:
        received: list[Record] = []
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
                received += [record for record in records if _number(record) <= last]
                if records and _number(records[-1]) >= last:
                    break
                iterator = answer.get("NextShardIterator")
        except ClientError as error:
            if error.response["Error"]["Code"] in _RECORDS_GONE_CODES:
                return None
            raise
        return tuple(_delivered(record) for record in received)


def _delivered(value: Any) -> Any:
    """Returns a value in the form in which Lambda delivers stream records: bytes become Base64."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _delivered(inner) for name, inner in value.items()}
    return [_delivered(inner) for inner in value] if isinstance(value, list) else value


def _number(record: Record) -> int:
    return int(record["dynamodb"]["SequenceNumber"])


def _experiments(partitions: Iterable[str]) -> Iterator[str]:
    for partition in partitions:
        # The items of other partitions belong to no experiment.
        with contextlib.suppress(ValueError):
            yield experiment_id_of(partition)
