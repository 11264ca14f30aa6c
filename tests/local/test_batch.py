"""Retry, bisect and giving up, without a stream."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import local.events.batch
from local.events.batch import BatchQueue, DeadLetters, RecordBatch

from .stream_mapping import mapping


@pytest.fixture(autouse=True)
def _no_backoff(monkeypatch: Any) -> None:
    monkeypatch.setattr(local.events.batch, "FIRST_BACKOFF_SECONDS", 0.0)


def records(count: Any, created: Any = 0.0) -> Any:
    return [
        {"dynamodb": {"SequenceNumber": str(n), "ApproximateCreationDateTime": created}}
        for n in range(1, count + 1)
    ]


class Function:
    """Stops at the first record that it dislikes, by report or by exception.

    Remembers what it saw.
    """

    def __init__(self, poison: Any = (), raises: Any = False) -> None:
        self.poison = set(poison)
        self.raises = raises
        self.processed: list[int] = []
        self.calls: list[list[int]] = []

    def __call__(self, event: Any) -> Any:
        numbers = [int(r["dynamodb"]["SequenceNumber"]) for r in event["Records"]]
        self.calls.append(numbers)
        for number in numbers:
            if number in self.poison:
                if self.raises:
                    raise ValueError(number)
                return {"batchItemFailures": [{"itemIdentifier": str(number)}]}
            self.processed.append(number)
        return {"batchItemFailures": []}


def test_a_full_disk_takes_no_attempts() -> None:
    given_up: list[Any] = []
    done: list[str] = []
    disk = iter([False] * 50 + [True] * 50)
    queue = BatchQueue(
        mapping(maximum_retry_attempts=2, bisect=False, report_batch_item_failures=False),
        Function([1], raises=True),
        done.append,
        lambda batch, condition: given_up.append((batch.attempts, condition)),
        lambda: next(disk),
    )
    queue.add(records(3), "3")
    for _ in range(50):
        assert not queue.step()
    assert (given_up, done) == ([], [])
    while queue:
        queue.step()
    assert (given_up, done) == ([(3, "RetryAttemptsExhausted")], ["3"])


@pytest.mark.parametrize("poison", [1, 2])
def test_records_that_grow_old_while_the_disk_is_full_are_not_given_up(poison: int) -> None:
    given_up: list[Any] = []
    done: list[str] = []
    disk = {"full": True}
    function = Function([poison])
    queue = BatchQueue(
        mapping(maximum_retry_attempts=2, maximum_record_age_seconds=60),
        function,
        done.append,
        lambda batch, condition: given_up.append(condition),
        lambda: not disk["full"],
    )
    queue.add(records(3), "3")
    for _ in range(9):
        queue.step()
    assert given_up == []
    disk["full"] = False
    function.poison.clear()
    while queue:
        queue.step()
    assert (given_up, done[-1], function.processed) == ([], "3", [1, 2, 3])


def test_what_cannot_be_recorded_as_given_up_is_tried_again() -> None:
    done: list[str] = []
    failures = iter([OSError("No space left on device")] * 3)

    def give_up(batch: RecordBatch, condition: str) -> None:
        for failure in failures:
            raise failure
        done.append(f"{len(batch.records)} {condition}")

    queue = BatchQueue(
        mapping(maximum_retry_attempts=0, bisect=False, report_batch_item_failures=False),
        Function([1], raises=True),
        done.append,
        give_up,
    )
    queue.add(records(2), "2")
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            queue.step()
        assert (len(queue), done) == (1, [])
    queue.step()
    assert done == ["2 RetryAttemptsExhausted", "2"]


def drain(function: Any, count: Any, end: Any = None, **changes: Any) -> Any:
    done, dropped = [], []
    queue = BatchQueue(
        mapping(**changes),
        function,
        lambda number: done.append(int(number)),
        lambda batch, condition: dropped.append((batch.records, condition)),
    )
    queue.add(records(count), str(end or count))
    for _ in range(10_000):
        if not queue:
            break
        queue.step()
    assert not queue
    return done, [[int(r["dynamodb"]["SequenceNumber"]) for r in batch] for batch, _ in dropped]


def test_batches_and_the_end_behind_the_last_match() -> None:
    function = Function()
    done, dropped = drain(function, 25, end=40)
    assert [len(call) for call in function.calls] == [10, 10, 5]
    assert (done, dropped) == ([10, 20, 40], [])


def test_nothing_matched_is_processed_at_once() -> None:
    function = Function()
    assert drain(function, 0, end=7) == ([7], [])
    assert function.calls == []


@given(
    st.integers(1, 30),
    st.sets(st.integers(1, 30), max_size=4),
    st.booleans(),
    st.integers(1, 12),
    st.integers(0, 3),
)
def test_only_poison_is_given_up_and_order_is_kept(
    count: int, poison: set[int], raises: bool, size: int, retries: int
) -> None:
    local.events.batch.FIRST_BACKOFF_SECONDS = 0.0
    poison = {number for number in poison if number <= count}
    function = Function(poison, raises)
    done, dropped = drain(function, count, batch_size=size, maximum_retry_attempts=retries)
    assert dropped == [[number] for number in sorted(poison)]
    assert done == sorted(done)
    assert done[-1] == count
    first_seen = list(dict.fromkeys(function.processed))
    assert first_seen == [number for number in range(1, count + 1) if number not in poison]
    for number in poison:
        assert sum(call == [number] for call in function.calls) >= retries


def test_without_bisect_the_rest_of_the_batch_is_given_up() -> None:
    function = Function({3})
    done, dropped = drain(function, 10, bisect=False)
    assert dropped == [[3, 4, 5, 6, 7, 8, 9, 10]]
    assert function.calls == [list(range(1, 11)), *[list(range(3, 11))] * 2]
    assert done == [2, 10]


@pytest.mark.parametrize(
    "answer",
    [
        {"batchItemFailures": [{"itemIdentifier": ""}]},
        {"batchItemFailures": [{"itemIdentifier": None}]},
        {"batchItemFailures": [{"itemIdentifier": "99"}]},
        {"batchItemFailures": [{"wrong": "1"}]},
        {"batchItemFailures": ["1"]},
    ],
)
def test_an_invalid_report_fails_the_whole_batch(answer: Any) -> None:
    assert drain(lambda event: answer, 2, bisect=False) == ([2], [[1, 2]])


@pytest.mark.parametrize(
    "answer", [None, {}, "", {"batchItemFailures": []}, {"batchItemFailures": None}, {"a": 1}]
)
def test_an_empty_report_is_success(answer: Any) -> None:
    assert drain(lambda event: answer, 2) == ([2], [])


def test_reports_count_only_where_the_template_asks_for_them() -> None:
    function = Function({1})
    assert drain(function, 2, report_batch_item_failures=False) == ([2], [])


def test_age_ends_retries_but_never_the_first_try() -> None:
    function = Function({1}, raises=True)
    _, dropped = drain(function, 1, maximum_retry_attempts=-1, maximum_record_age_seconds=60)
    assert dropped == [[1]]
    assert len(function.calls) == 1


def test_backoff_grows(monkeypatch: Any) -> None:
    monkeypatch.setattr(local.events.batch, "FIRST_BACKOFF_SECONDS", 0.1)
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    queue = BatchQueue(mapping(maximum_retry_attempts=-1), Function({1}), print, print)
    queue.add(records(1), "1")
    waits = []
    for _ in range(9):
        queue.step()
        waits.append(round(queue.waits(100.0), 3))
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]


def test_dead_letters(tmp_path: Any) -> None:
    path = tmp_path / "d.jsonl"
    letters = DeadLetters(path)
    letters.write(
        mapping(), "arn", "shard", RecordBatch(records(3, 5.0), "3", 4), "RetryAttemptsExhausted"
    )
    letters.write(mapping(), "arn", "shard", RecordBatch(records(1), "1", 1), "RecordAgeExceeded")
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert first["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert first["requestContext"]["approximateInvokeCount"] == 4
    info = first["DDBStreamBatchInfo"]
    assert (info["startSequenceNumber"], info["endSequenceNumber"]) == ("1", "3")
    assert (info["batchSize"], info["shardId"], info["streamArn"]) == (3, "shard", "arn")
    assert second["DDBStreamBatchInfo"]["batchSize"] == 1
