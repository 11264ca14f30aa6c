"""The poller on the stream of a table."""

import json
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

import local.events.batch
import local.events.stream_poller
from local.events.batch import DeadLetters
from local.events.checkpoints import Checkpoints
from local.events.stream_poller import (
    BACKPRESSURE_RECORDS,
    HINTED_SECONDS,
    IDLE_SECONDS,
    LAG_RECORDS,
    SHORTEST_YIELD_SECONDS,
    UNHINTED_SECONDS,
    StreamPoller,
)

from .conftest import PATIENT_SECONDS, TABLE, OpenTable, eventually
from .stream_mapping import mapping


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: Any) -> None:
    monkeypatch.setattr(local.events.batch, "FIRST_BACKOFF_SECONDS", 0.005)


@pytest.fixture
def poll(opened: OpenTable) -> Any:
    """Starts pollers on the table's stream; stops them at the end."""
    pollers = []
    client = opened.reader()

    def start(invoke: Any, *, hint: bool = True, **changes: Any) -> Any:
        poller = StreamPoller(
            mapping(**changes),
            client=client,
            stream=opened.stream,
            invoke=invoke,
            checkpoints=Checkpoints(opened.folder.checkpoints),
            dead_letters=DeadLetters(opened.folder.dead_letters),
            written_at=opened.file.written_at if hint else None,
        )
        pollers.append(poller)
        poller.start()
        return poller

    yield start
    for poller in pollers:
        poller.stop()


def names(event: Any) -> Any:
    return [record["dynamodb"]["Keys"]["SK"]["S"] for record in event["Records"]]


def test_records_come_in_order_in_lambdas_form(opened: OpenTable, poll: Any) -> None:
    events: list[Any] = []
    poll(events.append)
    for number in range(35):
        opened.put(f"{number:03}", body="é")
    opened.dynamodb.delete_item(TableName=TABLE, Key={"PK": {"S": "P"}, "SK": {"S": "000"}})
    eventually(lambda: len([r for event in events for r in event["Records"]]) == 36)
    assert [name for event in events for name in names(event)] == [
        *(f"{number:03}" for number in range(35)),
        "000",
    ]
    assert max(len(event["Records"]) for event in events) <= 10
    first = json.loads(json.dumps(events[0]))["Records"][0]
    assert first["eventName"] == "INSERT"
    assert first["eventSource"] == "aws:dynamodb"
    assert first["eventSourceARN"] == opened.stream
    assert first["dynamodb"]["NewImage"]["body"] == {"S": "é"}
    assert isinstance(first["dynamodb"]["ApproximateCreationDateTime"], int | float)
    assert events[-1]["Records"][-1]["eventName"] == "REMOVE"


def test_filter_hides_records_and_moves_the_checkpoint(opened: OpenTable, poll: Any) -> None:
    events: list[Any] = []
    pattern = json.dumps({"dynamodb": {"Keys": {"SK": {"S": [{"prefix": "A#"}]}}}})
    poller = poll(events.append, patterns=(pattern,))
    for number in range(4):
        opened.put(f"A#{number}")
        opened.put(f"B#{number}")
    eventually(lambda: poller.processed() == 8)
    assert [name for event in events for name in names(event)] == ["A#0", "A#1", "A#2", "A#3"]


def test_poison_is_isolated_and_written_down(opened: OpenTable, poll: Any) -> None:
    seen: list[Any] = []

    def invoke(event: Any) -> Any:
        for record in event["Records"]:
            name = record["dynamodb"]["Keys"]["SK"]["S"]
            if name == "3":
                number = record["dynamodb"]["SequenceNumber"]
                return {"batchItemFailures": [{"itemIdentifier": number}]}
            seen.append(name)
        return None

    for number in range(6):
        opened.put(str(number))
    poll(invoke)
    eventually(lambda: len(seen) >= 5)
    assert seen == ["0", "1", "2", "4", "5"]
    (letter,) = map(json.loads, opened.folder.dead_letters.read_text().splitlines())
    assert letter["DDBStreamBatchInfo"]["batchSize"] == 1
    assert letter["DDBStreamBatchInfo"]["startSequenceNumber"] == "4"
    assert letter["requestContext"]["approximateInvokeCount"] == 3


def test_transient_failures_lose_nothing(opened: OpenTable, poll: Any) -> None:
    seen, calls = [], []

    def invoke(event: Any) -> None:
        calls.append(event)
        if len(calls) % 3:
            raise TimeoutError("not now")
        seen.extend(names(event))

    for number in range(30):
        opened.put(f"{number:02}")
    poll(invoke, maximum_retry_attempts=-1)
    eventually(lambda: len(seen) == 30)
    assert seen == [f"{number:02}" for number in range(30)]


def test_restart_goes_on_at_the_checkpoint(opened: OpenTable, poll: Any) -> None:
    first: list[Any] = []
    second: list[Any] = []
    poller = poll(first.append)
    for number in range(5):
        opened.put(str(number))
    eventually(lambda: poller.processed() == 5)
    poller.stop()
    for number in range(5, 8):
        opened.put(str(number))
    poll(second.append)
    eventually(lambda: len([r for event in second for r in event["Records"]]) == 3)
    assert [name for event in second for name in names(event)] == ["5", "6", "7"]


def test_an_unreadable_checkpoint_file_starts_over(opened: OpenTable, poll: Any) -> None:
    opened.put("0")
    opened.folder.checkpoints.write_text("{")
    events: list[Any] = []
    poll(events.append)
    eventually(lambda: events)
    assert names(events[0]) == ["0"]


def test_trimmed_records_do_not_stop_the_poller(opened: OpenTable, poll: Any) -> None:
    events: list[Any] = []
    poller = poll(events.append)
    for number in range(5):
        opened.put(str(number))
    eventually(lambda: poller.processed() == 5)
    poller.stop()
    later = time.time() + 2 * 24 * 3600
    assert opened.file.trim_stream(3, now=time.time()) == 0
    assert opened.file.trim_stream(3, now=later) == 3
    assert opened.file.trim_stream(99, now=later) == 1, "the newest stays"
    opened.put("5")
    again: list[Any] = []
    poll(again.append)
    eventually(lambda: again)
    assert names(again[0]) == ["5"]


@pytest.mark.parametrize("hint", [True, False])
def test_latency_is_small(
    opened: OpenTable, poll: Any, hint: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record waits for the pauses that the poller makes once it is there, and on any machine
    these are as long."""
    arrived = threading.Event()
    rested, rested_at_arrival = [0.0], [0.0]

    def invoke(_event: Any) -> None:
        rested_at_arrival[0] = rested[0]
        arrived.set()

    poller = poll(invoke, hint=hint)
    wait = poller._stop.wait

    def rest(seconds: float) -> bool:
        rested[0] += seconds
        return bool(wait(seconds))

    monkeypatch.setattr(poller._stop, "wait", rest)
    waits = []
    for number in range(5):
        time.sleep(0.2)
        arrived.clear()
        opened.put(str(number))
        before = rested[0]
        assert arrived.wait(PATIENT_SECONDS)
        waits.append(rested_at_arrival[0] - before)
    assert max(waits) < 0.2


def test_a_quiet_stream_is_hardly_read(opened: OpenTable, poll: Any) -> None:
    reads: list[Any] = []
    poller = poll(lambda event: None)
    read = poller.client.get_records

    def counted(**arguments: Any) -> Any:
        reads.append(1)
        return read(**arguments)

    poller.client.get_records = counted
    opened.put("0")
    eventually(lambda: poller.processed() == 1)
    eventually(lambda: all(map(poller._is_quiet, poller._shards.values())))
    reads.clear()
    began = time.monotonic()
    time.sleep(1)
    assert len(reads) <= 1 + (time.monotonic() - began) / UNHINTED_SECONDS


def test_the_longer_nothing_is_written_the_longer_are_the_pauses(
    opened: OpenTable, poll: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = [0.0]
    clocks = SimpleNamespace(time=lambda: time.time() + passed[0], monotonic=time.monotonic)
    monkeypatch.setattr(local.events.stream_poller, "time", clocks)
    poller = poll(lambda event: None)
    opened.put("0")
    eventually(lambda: poller.processed() == 1)
    pauses = []
    for passed[0] in (0.0, 2.0, 3600.0, -3600.0):
        pauses.append(poller._quiet_pause())
    assert HINTED_SECONDS <= pauses[0] < pauses[1] < pauses[2] == IDLE_SECONDS
    assert pauses[3] == HINTED_SECONDS, "the clock was set back"


def test_a_clock_that_is_set_back_holds_nothing_up(
    opened: OpenTable, poll: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = [3600.0]
    clocks = SimpleNamespace(time=lambda: time.time() + ahead[0], monotonic=time.monotonic)
    monkeypatch.setattr(local.events.stream_poller, "time", clocks)
    events: list[Any] = []
    poller = poll(events.append)
    opened.put("0")
    eventually(lambda: poller.processed() == 1)
    ahead[0] = 0.0
    opened.put("1")
    eventually(lambda: [name for event in events for name in names(event)] == ["0", "1"])


class FakeStreams:
    """Two shards, the second the child of the first.

    The child's records may come only after the parent's.
    """

    def __init__(self) -> None:
        self.pages = {"parent": [["1", "2"], []], "child": [["3"]]}
        self.lost = True

    def describe_stream(self, **request: Any) -> Any:
        if "ExclusiveStartShardId" not in request:
            shards = [{"ShardId": "child", "ParentShardId": "parent"}]
            return {"StreamDescription": {"Shards": shards, "LastEvaluatedShardId": "child"}}
        return {"StreamDescription": {"Shards": [{"ShardId": "parent", "ParentShardId": "gone"}]}}

    def get_shard_iterator(self, **request: Any) -> Any:
        return {"ShardIterator": f"{request['ShardId']} 0"}

    def get_records(self, **request: Any) -> Any:
        shard, _, page = request["ShardIterator"].partition(" ")
        pages = self.pages[shard]
        records = [
            {"eventName": "INSERT", "dynamodb": {"SequenceNumber": number}}
            for number in pages[int(page)]
        ]
        more = int(page) + 1 < len(pages)
        return {
            "Records": records,
            **({"NextShardIterator": f"{shard} {int(page) + 1}"} if more else {}),
        }


def test_a_child_shard_waits_for_its_parent(tmp_path: Any) -> None:
    seen: list[Any] = []
    poller = StreamPoller(
        mapping(),
        client=FakeStreams(),
        stream="arn",
        invoke=lambda event: seen.extend(
            record["dynamodb"]["SequenceNumber"] for record in event["Records"]
        ),
        checkpoints=Checkpoints(tmp_path / "c.json"),
        dead_letters=DeadLetters(tmp_path / "d.jsonl"),
    )
    poller.start()
    eventually(lambda: len(seen) == 3)
    poller.stop()
    assert seen == ["1", "2", "3"]


class LongStream:
    """One shard with pages of given lengths, each of them all there is then."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def describe_stream(self, **_: Any) -> Any:
        return {"StreamDescription": {"Shards": [{"ShardId": "one"}]}}

    def get_shard_iterator(self, **_: Any) -> Any:
        return {"ShardIterator": "0"}

    def get_records(self, **request: Any) -> Any:
        page = int(request["ShardIterator"])
        length = self.lengths[page] if page < len(self.lengths) else 0
        records = [
            {
                "eventName": "INSERT",
                "dynamodb": {"SequenceNumber": f"{page}{number:05}"},
            }
            for number in range(length)
        ]
        return {"Records": records, "NextShardIterator": str(page + (length > 0)), "Ends": True}


def test_whoever_asks_is_told_when_very_much_waits(tmp_path: Any) -> None:
    reports: list[bool] = []
    handled: list[int] = []
    few, many = BACKPRESSURE_RECORDS - 1, BACKPRESSURE_RECORDS
    poller = StreamPoller(
        mapping(batch_size=10_000),
        client=LongStream([few, many, few]),
        stream="arn",
        invoke=lambda event: handled.append(len(event["Records"])),
        checkpoints=Checkpoints(tmp_path / "c.json"),
        dead_letters=DeadLetters(tmp_path / "d.jsonl"),
        report_lag=reports.append,
    )
    poller.start()
    eventually(lambda: len(reports) > 3)
    poller.stop()
    assert handled == [few, many, few]
    assert reports[:4] == [False, True, False, False]


@pytest.mark.parametrize("waiting", [1, LAG_RECORDS])
def test_while_requests_are_served_records_gather_unless_many_wait(
    tmp_path: Any, waiting: int
) -> None:
    handled: list[float] = []
    poller = StreamPoller(
        mapping(batch_size=10_000),
        client=LongStream([waiting] * 3),
        stream="arn",
        invoke=lambda _: handled.append(time.monotonic()),
        checkpoints=Checkpoints(tmp_path / "c.json"),
        dead_letters=DeadLetters(tmp_path / "d.jsonl"),
        is_serving=lambda: True,
    )
    poller.start()
    eventually(lambda: len(handled) == 3)
    poller.stop()
    gathered = handled[-1] - handled[0] >= 2 * SHORTEST_YIELD_SECONDS
    assert gathered == (waiting < LAG_RECORDS)
