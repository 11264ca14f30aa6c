"""Processes batches of stream records as Lambda does: invoke, retry, bisect, give up."""

from __future__ import annotations

import json
import time
import uuid
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.log import report
from local.template_definitions import StreamMapping

Record = dict[str, Any]

FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 10.0


class RecordBatch:
    """Stream records that are processed together. After the batch is processed, ``end`` is recorded
    as the sequence number up to which the shard is processed.
    """

    __slots__ = ("attempts", "end", "records")

    def __init__(self, records: list[Record], end: str, attempts: int = 0) -> None:
        self.records = records
        self.end = end
        self.attempts = attempts


def sequence_number(record: Record) -> str:
    """Returns the record's sequence number in its shard."""
    number: str = record["dynamodb"]["SequenceNumber"]
    return number


class DeadLetters:
    """The dead-letter file: a line for each batch of stream records that was given up. As in
    Lambda's failure destination, a line holds the records' position in the stream, not the records.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(
        self, mapping: StreamMapping, stream: str, shard: str, batch: RecordBatch, condition: str
    ) -> None:
        """Appends a line to the dead-letter file: one JSON object that describes the batch of
        stream records."""
        times = [
            float(record["dynamodb"].get("ApproximateCreationDateTime", 0))
            for record in (batch.records[0], batch.records[-1])
        ]
        letter = {
            "requestContext": {
                "requestId": str(uuid.uuid4()),
                "functionArn": f"arn:aws:lambda:us-east-1:000000000000:function:{mapping.function}",
                "condition": condition,
                "approximateInvokeCount": batch.attempts,
            },
            "version": "1.0",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "DDBStreamBatchInfo": {
                "shardId": shard,
                "startSequenceNumber": sequence_number(batch.records[0]),
                "endSequenceNumber": sequence_number(batch.records[-1]),
                "approximateArrivalOfFirstRecord": times[0],
                "approximateArrivalOfLastRecord": times[1],
                "batchSize": len(batch.records),
                "streamArn": stream,
            },
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(letter) + "\n")
        report(
            f"{mapping.name}: gave up {len(batch.records)} records from "
            f"{sequence_number(batch.records[0])} ({condition}), see {self._path}"
        )


class BatchQueue:
    """The batches of records of one shard of a DynamoDB stream, processed strictly in order: a
    batch waits until the batch before it is processed or given up."""

    def __init__(
        self,
        mapping: StreamMapping,
        invoke: Callable[[dict[str, Any]], Any],
        done: Callable[[str], None],
        give_up: Callable[[RecordBatch, str], None],
        can_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """Args:
        done: called with each sequence number up to which all records are processed or given
            up.
        give_up: called with each batch that is given up, and the reason.
        can_write: called after a failure. While it returns False, for example because the disk is
            full, the batch is not given up, and its attempts do not count.
        """
        self._mapping = mapping
        self._invoke = invoke
        self._done = done
        self._give_up = give_up
        self._can_write = can_write
        self._batches: deque[RecordBatch] = deque()
        self._failures = 0
        self._not_before = 0.0

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, records: list[Record], end: str) -> None:
        """Splits the records that passed the filter into batches of the mapping's size and queues
        them. ``end`` is the sequence number of the last record that was read, even if the filter
        dropped that record.
        """
        size = self._mapping.batch_size
        for start in range(0, len(records), size):
            part = records[start : start + size]
            last = start + size >= len(records)
            self._batches.append(RecordBatch(part, end if last else sequence_number(part[-1])))
        if not records:
            self._done(end)

    def waits(self, now: float) -> float:
        """Returns the seconds until the first batch of stream records may be retried; 0 if it may
        be tried now."""
        return max(0.0, self._not_before - now)

    def step(self) -> bool:
        """Invokes the function with the first batch of the queue. Gives the batch up if it is too
        old for a retry (then without a call) or if its last retry fails. Returns whether any of its
        records were processed or given up."""
        batch = self._batches.popleft()
        if batch.attempts and self._too_old(batch):
            self._drop(batch, "RecordAgeExceeded")
            return True
        batch.attempts += 1
        failed, single = self._failed_position(batch)
        if failed is None:
            self._failures, self._not_before = 0, 0.0
            self._done(batch.end)
            return True
        if failed > 0:
            # The records before the failed one are processed; the failed one has been tried once.
            self._done(sequence_number(batch.records[failed - 1]))
            attempts = int(self._can_write())
            self._batches.appendleft(RecordBatch(batch.records[failed:], batch.end, attempts))
            self._failures = 0
            self._back_off()
            return True
        if not self._can_write():
            # The next attempt is a first one, which is made at any age.
            batch.attempts = 0
            self._batches.appendleft(batch)
            self._back_off()
            return False
        if len(batch.records) > 1 and self._mapping.bisect:
            # A reported failure names the record; after an exception bisecting finds it. A split
            # does not count as a retry.
            middle = 1 if single else len(batch.records) // 2
            head, tail = batch.records[:middle], batch.records[middle:]
            self._batches.appendleft(RecordBatch(tail, batch.end))
            self._batches.appendleft(RecordBatch(head, sequence_number(head[-1]), int(single)))
            self._back_off()
            return False
        limit = self._mapping.maximum_retry_attempts
        if 0 <= limit < batch.attempts:
            self._drop(batch, "RetryAttemptsExhausted")
            return True
        self._batches.appendleft(batch)
        self._back_off()
        return False

    def _drop(self, batch: RecordBatch, condition: str) -> None:
        try:
            self._give_up(batch, condition)
        except BaseException:
            # The batch is not processed, and its dead letter is not written.
            self._batches.appendleft(batch)
            self._back_off()
            raise
        self._done(batch.end)
        self._failures, self._not_before = 0, 0.0

    def _back_off(self) -> None:
        delay = FIRST_BACKOFF_SECONDS * 2**self._failures
        self._not_before = time.monotonic() + min(delay, LONGEST_BACKOFF_SECONDS)
        self._failures = min(self._failures + 1, 16)

    def _too_old(self, batch: RecordBatch) -> bool:
        """Whether a batch is too old for a retry. The first attempt is made at any age, because
        this machine may have slept for days."""
        limit = self._mapping.maximum_record_age_seconds
        if limit < 0:
            return False
        created = float(batch.records[0]["dynamodb"].get("ApproximateCreationDateTime", 0))
        return time.time() - created > limit

    def _failed_position(self, batch: RecordBatch) -> tuple[int | None, bool]:
        """Invokes the function with a batch. Returns the index of the first failed record, or None
        if all succeeded; and whether the function itself named the failed record.
        """
        try:
            answer = self._invoke({"Records": batch.records})
        except Exception as error:
            report(f"{self._mapping.name}: attempt {batch.attempts} failed", error)
            return 0, False
        if not self._mapping.report_batch_item_failures or not answer:
            return None, False
        try:
            failures = [entry["itemIdentifier"] for entry in answer["batchItemFailures"] or ()]
        except (TypeError, KeyError):
            failures = [""] if not isinstance(answer, dict) or "batchItemFailures" in answer else []
        if not failures:
            return None, False
        positions = {sequence_number(record): at for at, record in enumerate(batch.records)}
        known = [positions.get(identifier, -1) for identifier in failures]
        if min(known) < 0:
            report(f"{self._mapping.name}: {failures!r} are not all sequence numbers of the batch")
            return 0, False
        report(f"{self._mapping.name}: record {failures[0]} failed, attempt {batch.attempts}")
        return min(known), True
