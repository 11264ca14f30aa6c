"""Drives functions from the table's stream as Lambda's event-source mappings do.

In one background thread of :mod:`local.events.__main__`.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.definitions import StreamMapping
from local.events.batch import BatchQueue, DeadLetters, Record, sequence_number
from local.events.checkpoints import Checkpoints
from local.events.filters import compile_filters
from local.log import report

IDLE_SECONDS = 0.1
"""Pause between two looks at a quiet shard; with the look itself, under 2 % of a core."""

COURTEOUS_SHARE = 3.0
COURTEOUS_SECONDS = 0.5
"""While requests are served the poller rests so many times as long as it worked, at most so long:
unlike in AWS, they share one engine. It does not while it is behind, for else a load that goes on
for minutes would leave minutes of work, and slow searches, behind it."""

BEHIND_RECORDS = 100
"""A page with so many records for the function, those of some twenty runs, says that more come than
one look handles."""

FAR_BEHIND_RECORDS = 300
"""With so many, of some sixty runs, those who write are to wait for those who follow."""

GATHER_SECONDS = 0.03
"""Pause after a short page, so that a burst of writes comes as few batches.

It stands for the batching window.
"""

LONG_GATHER_SECONDS = 1.0
"""The same where the window is longer than a second: few large batches are wanted there."""

HINTED_SECONDS = 0.02
"""Pause where somebody else tells that nothing was written."""

UNHINTED_SECONDS = 2.0
"""A quiet shard is looked at this often even so."""

CLOCK_GRAIN_SECONDS = 0.05
"""A file's time is this coarse at most, with a margin."""

READ_AT_ONCE = 1000
SHARD_LIST_SECONDS = 30.0
UNREADABLE_SECONDS = 1.0

_LOST_PLACE = {"ExpiredIteratorException", "TrimmedDataAccessException"}


def take_json_as_it_is(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Hook for GetRecords.

    Hands out DynamoDB's JSON, which is what functions receive, instead of parsing it.
    """
    if response_dict["status_code"] < 300:
        customized_response_dict.update(json.loads(response_dict["body"]))
        response_dict["body"] = b"{}"


class _Shard:
    """One shard for one mapping: reads it and feeds its queue."""

    def __init__(self, poller: StreamPoller, shard_id: str, parent: str | None) -> None:
        self.shard_id = shard_id
        self.parent = parent
        self.finished = False
        self.read_at = 0.0
        self.is_behind = False
        """Whether the last page was full, or had many records for the function."""
        self._poller = poller
        self._iterator: str | None = None
        mapping = poller.mapping
        self._position = poller.checkpoints.get(poller.stream, mapping.name, shard_id)
        self.queue = BatchQueue(
            mapping,
            poller.invoke,
            lambda number: poller.checkpoints.set(poller.stream, mapping.name, shard_id, number),
            lambda batch, condition: poller.dead_letters.write(
                mapping, poller.stream, shard_id, batch, condition
            ),
        )

    def read(self) -> int:
        """Reads one page into the queue; answers how many records it held, :data:`READ_AT_ONCE`
        where there are more."""
        poller = self._poller
        if self._iterator is None:
            self._iterator = self._new_iterator()
        self.read_at = time.time()
        try:
            page = poller.client.get_records(ShardIterator=self._iterator, Limit=READ_AT_ONCE)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _LOST_PLACE:
                raise
            self._iterator = None
            return 0
        records: list[Record] = page.get("Records", [])
        wanted: list[Record] = []
        self._iterator = page.get("NextShardIterator")
        if records:
            # Of what no filter lets through the engine's file tells the place alone.
            told = [record for record in records if "eventName" in record]
            for record in told:
                poller.complete(record)
            self._position = sequence_number(records[-1])
            wanted = [record for record in told if poller.matches(record)]
            self.queue.add(wanted, self._position)
        count = len(records) if page.get("Ends", True) else READ_AT_ONCE
        self.is_behind = count == READ_AT_ONCE or len(wanted) >= BEHIND_RECORDS
        poller.tell_behind(len(wanted) >= FAR_BEHIND_RECORDS)
        if count == READ_AT_ONCE:
            self.read_at = 0.0
        self.finished = self._iterator is None
        if self.finished:
            poller.list_soon()
        return count

    def _new_iterator(self) -> str:
        client, stream = self._poller.client, self._poller.stream
        if self._position is not None:
            # What has been trimmed behind the checkpoint cannot be read again: start with the
            # oldest there is.
            with contextlib.suppress(ClientError):
                answer = client.get_shard_iterator(
                    StreamArn=stream,
                    ShardId=self.shard_id,
                    ShardIteratorType="AFTER_SEQUENCE_NUMBER",
                    SequenceNumber=self._position,
                )
                return str(answer["ShardIterator"])
        answer = client.get_shard_iterator(
            StreamArn=stream,
            ShardId=self.shard_id,
            ShardIteratorType=(
                "TRIM_HORIZON"
                if self._position is not None
                else self._poller.mapping.starting_position
            ),
        )
        return str(answer["ShardIterator"])


class StreamPoller:
    """One event-source mapping. ``invoke`` calls the function with an event."""

    def __init__(
        self,
        mapping: StreamMapping,
        *,
        client: Any,
        stream: str,
        invoke: Callable[[dict[str, Any]], Any],
        checkpoints: Checkpoints,
        dead_letters: DeadLetters,
        region: str = "us-east-1",
        written_at: Callable[[], float] | None = None,
        busy: Callable[[], bool] = lambda: False,
        tell_behind: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """``written_at`` tells cheaply when the stream may last have grown (seconds since 1970);
        ``busy`` whether somebody else is working on the engine, to whom most of the time is left;
        ``tell_behind`` is told by each page whether very much waits.
        """
        self.mapping = mapping
        self.client = client
        self.stream = stream
        self.invoke = invoke
        self.checkpoints = checkpoints
        self.dead_letters = dead_letters
        self.matches = compile_filters(mapping.patterns)
        self._region = region
        self._written_at = written_at
        self._busy = busy
        self.tell_behind = tell_behind
        self._shards: dict[str, _Shard] = {}
        self._listed = float("-inf")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=mapping.name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Finishes the batch at hand, writes the checkpoints and ends the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        self.checkpoints.flush()

    def processed(self) -> int | None:
        """The sequence number up to which every shard is processed.

        None while one has no checkpoint.
        """
        numbers = [
            self.checkpoints.get(self.stream, self.mapping.name, shard) for shard in self._shards
        ]
        known = [int(number) for number in numbers if number is not None]
        return min(known) if known and len(known) == len(numbers) else None

    def list_soon(self) -> None:
        """A shard ended: look for its children at the next turn."""
        self._listed = float("-inf")

    def complete(self, record: Record) -> None:
        """Adds what Lambda adds to a record, in Lambda's spelling."""
        record["eventSourceARN"] = self.stream
        record["awsRegion"] = self._region
        identity = record.get("userIdentity")
        if identity:
            record["userIdentity"] = {
                name[:1].lower() + name[1:]: value for name, value in identity.items()
            }

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                pause = self._round()
            except (BotoCoreError, ClientError, sqlite3.Error) as error:
                report(f"{self.mapping.name}: the stream cannot be read: {error}")
                pause = UNREADABLE_SECONDS
            except Exception as error:
                report(f"{self.mapping.name}: cannot go on, trying again", error)
                pause = UNREADABLE_SECONDS
            self.checkpoints.flush(force=False)
            behind = any(shard.is_behind for shard in self._shards.values())
            if self._busy() and not behind:
                taken = time.monotonic() - began
                pause = max(pause, min(COURTEOUS_SHARE * taken, COURTEOUS_SECONDS))
            if pause:
                self._stop.wait(pause)

    def _round(self) -> float:
        """Gives each shard one turn; answers how long to pause."""
        now = time.monotonic()
        if now - self._listed > SHARD_LIST_SECONDS:
            self._list_shards()
            self._listed = now
        pause = IDLE_SECONDS
        for shard in list(self._shards.values()):
            if self._stop.is_set():
                break
            pause = min(pause, self._turn(shard))
        return pause

    def _turn(self, shard: _Shard) -> float:
        parent = self._shards.get(shard.parent) if shard.parent else None
        if parent is not None and not (parent.finished and not parent.queue):
            return IDLE_SECONDS
        if shard.queue:
            waits = shard.queue.waits(time.monotonic())
            if waits:
                return waits
            shard.queue.step()
            return 0.0
        if shard.finished:
            return IDLE_SECONDS
        if self._is_quiet(shard):
            return HINTED_SECONDS
        count = shard.read()
        if shard.queue or count == READ_AT_ONCE:
            return 0.0
        if not count:
            return IDLE_SECONDS
        return LONG_GATHER_SECONDS if self.mapping.batching_window_seconds > 1 else GATHER_SECONDS

    def _is_quiet(self, shard: _Shard) -> bool:
        """Whether nothing was written since the shard's last read began, as far as is known."""
        # A clock that was set back since then tells nothing of what came first.
        if self._written_at is None or not 0 <= time.time() - shard.read_at <= UNHINTED_SECONDS:
            return False
        return shard.read_at - self._written_at() > CLOCK_GRAIN_SECONDS

    def _list_shards(self) -> None:
        start: dict[str, str] = {}
        while True:
            answer = self.client.describe_stream(StreamArn=self.stream, **start)
            description = answer["StreamDescription"]
            for listed in description["Shards"]:
                if listed["ShardId"] not in self._shards:
                    self._shards[listed["ShardId"]] = _Shard(
                        self, listed["ShardId"], listed.get("ParentShardId")
                    )
            last = description.get("LastEvaluatedShardId")
            if not last:
                return
            start = {"ExclusiveStartShardId": last}


def stream_client(make: Callable[[str], Any]) -> Any:
    """A DynamoDB Streams client whose GetRecords answers plain JSON."""
    client = make("dynamodbstreams")
    client.meta.events.register(
        f"before-parse.{client.meta.service_model.service_id.hyphenize()}.GetRecords",
        take_json_as_it_is,
    )
    return client
