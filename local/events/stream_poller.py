"""Calls functions with records of the table's stream, as Lambda's event source mappings do. Runs in
a background thread of :mod:`local.events.__main__`."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.events.batch import BatchQueue, DeadLetters, Record, sequence_number
from local.events.checkpoints import Checkpoints
from local.events.filter_patterns import compile_filters
from local.log import report
from local.template_definitions import StreamMapping

IDLE_SECONDS = 0.1
"""Pause between two reads of a quiet shard; with the read itself, under 2 % of a core."""

YIELD_RATIO = 3.0
LONGEST_YIELD_SECONDS = 0.5
SHORTEST_YIELD_SECONDS = 0.25
"""While requests are served, the poller sleeps :data:`YIELD_RATIO` times as long as it worked, and
within these limits: requests write to the same file, and a batch of forty runs takes a fifth less
time for each run than batches of ten. It does not sleep while the shard lags, because lag would
otherwise grow during a long load and slow down searches."""

LAG_RECORDS = 300
"""A page with this many records for the function counts as lag; about sixty runs have as many.
Searches read the runs that are not yet indexed."""

BACKPRESSURE_RECORDS = 500
"""A page with this many records for the function, about those of a hundred runs, makes writers
wait: backpressure."""

GATHER_SECONDS = 0.03
"""Pause after a short page without records for the function, unless the mapping's batching window
is longer than a second: then :data:`IDLE_SECONDS`."""

HINTED_SECONDS = 0.02
"""Shortest pause while the file's modification time shows that nothing was written."""

REST_RATIO = 0.02
"""While nothing is written to the file, the pause is this part of the time since the last write,
between :data:`HINTED_SECONDS` and :data:`IDLE_SECONDS`."""

UNHINTED_SECONDS = 2.0
"""A quiet shard is read at least this often, whatever the modification time says."""

CLOCK_GRAIN_SECONDS = 0.05
"""The resolution of a file's modification time, with a margin."""

PAGE_RECORDS = 1000
SHARD_LIST_SECONDS = 30.0
UNREADABLE_SECONDS = 1.0

_LOST_PLACE = {"ExpiredIteratorException", "TrimmedDataAccessException"}


def keep_raw_json(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Hook for GetRecords: returns DynamoDB's JSON, which functions receive, in place of parsed
    values."""
    if response_dict["status_code"] < 300:
        customized_response_dict.update(json.loads(response_dict["body"]))
        response_dict["body"] = b"{}"


class _Shard:
    """One shard as one mapping reads it: its iterator, and the queue of batches that were read."""

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
            poller.can_write,
        )

    def read(self) -> int:
        """Reads one page into the queue. Returns the number of its records; :data:`PAGE_RECORDS` if
        more follow."""
        poller = self._poller
        if self._iterator is None:
            self._iterator = self._new_iterator()
        self.read_at = time.time()
        try:
            page = poller.client.get_records(ShardIterator=self._iterator, Limit=PAGE_RECORDS)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _LOST_PLACE:
                raise
            self._iterator = None
            return 0
        records: list[Record] = page.get("Records", [])
        wanted: list[Record] = []
        self._iterator = page.get("NextShardIterator")
        if records:
            # A record without an event only says that no record up to its sequence number matches.
            matching = [record for record in records if "eventName" in record]
            for record in matching:
                poller.complete(record)
            self._position = sequence_number(records[-1])
            wanted = [record for record in matching if poller.matches(record)]
            self.queue.add(wanted, self._position)
        count = len(records) if page.get("Ends", True) else PAGE_RECORDS
        self.is_behind = count == PAGE_RECORDS or len(wanted) >= LAG_RECORDS
        poller.report_lag(len(wanted) >= BACKPRESSURE_RECORDS)
        if count == PAGE_RECORDS:
            self.read_at = 0.0
        self.finished = self._iterator is None
        if self.finished:
            poller.list_soon()
        return count

    def _new_iterator(self) -> str:
        client, stream = self._poller.client, self._poller.stream
        if self._position is not None:
            # Records after the checkpoint may have been trimmed: then start with the oldest.
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
    """Polls the table's stream for one event source mapping. ``invoke`` calls the mapping's
    function with an event.
    """

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
        is_serving: Callable[[], bool] = lambda: False,
        report_lag: Callable[[bool], None] = lambda _: None,
        can_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """
        Args:
            written_at: returns cheaply when the stream may last have grown, in seconds since 1970.
            is_serving: returns whether requests are served, which then have priority.
            report_lag: called for each page with whether backpressure is needed.
            can_write: returns whether the disk can be written. While it cannot, failures of the
                function do not count.
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
        self._is_serving = is_serving
        self.report_lag = report_lag
        self.can_write = can_write
        self._shards: dict[str, _Shard] = {}
        self._listed = float("-inf")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=mapping.name, daemon=True)

    def start(self) -> None:
        """Starts the thread that polls the table's stream."""
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Lets the thread finish its current batch, at most ``timeout`` seconds, and writes the
        checkpoints."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        self.checkpoints.flush()

    def processed(self) -> int | None:
        """Returns the sequence number up to which every shard is processed; None if no shard is
        known or one has no checkpoint."""
        numbers = [
            self.checkpoints.get(self.stream, self.mapping.name, shard) for shard in self._shards
        ]
        known = [int(number) for number in numbers if number is not None]
        return min(known) if known and len(known) == len(numbers) else None

    def list_soon(self) -> None:
        """Makes the poller list the stream's shards before its next read, because a shard has ended
        and may have children."""
        self._listed = float("-inf")

    def complete(self, record: Record) -> None:
        """Adds to a stream record the fields that Lambda adds, named as Lambda names them."""
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
            if self._is_serving() and not behind:
                taken = time.monotonic() - began
                wanted = max(YIELD_RATIO * taken, SHORTEST_YIELD_SECONDS)
                pause = max(pause, min(wanted, LONGEST_YIELD_SECONDS))
            if pause:
                self._stop.wait(pause)

    def _round(self) -> float:
        """Takes one turn at each shard: reads a page, or processes a batch. Returns how many
        seconds to sleep before the next round.
        """
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
            return self._quiet_pause()
        count = shard.read()
        if shard.queue or count == PAGE_RECORDS:
            return 0.0
        if not count:
            return IDLE_SECONDS
        return IDLE_SECONDS if self.mapping.batching_window_seconds > 1 else GATHER_SECONDS

    def _is_quiet(self, shard: _Shard) -> bool:
        """Whether nothing seems to have been written since the shard's last read began."""
        # If the clock was set back since then, the times cannot be compared.
        if self._written_at is None or not 0 <= time.time() - shard.read_at <= UNHINTED_SECONDS:
            return False
        return shard.read_at - self._written_at() > CLOCK_GRAIN_SECONDS

    def _quiet_pause(self) -> float:
        """Returns how many seconds to sleep while nothing seems to be written."""
        if self._written_at is None:
            return IDLE_SECONDS
        since = time.time() - self._written_at()
        return min(max(HINTED_SECONDS, REST_RATIO * since), IDLE_SECONDS)

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
    """Returns a DynamoDB Streams client whose GetRecords returns plain JSON."""
    client = make("dynamodbstreams")
    client.meta.events.register(
        f"before-parse.{client.meta.service_model.service_id.hyphenize()}.GetRecords",
        keep_raw_json,
    )
    return client
