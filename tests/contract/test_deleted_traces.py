"""Deleted traces leave no row in the system tables, wherever their rows were."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import deltalake
import pytest

from lander import app as lander
from mlcore.db import keys
from mlcore.repos.traces import row_removal_requests
from mlcore.system_tables import storage
from operate import system_tables
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.lake_in_s3 import bucket, rows, s3
from tests.contract.trace_calls import ask, export, span, tell
from tests.contract.trace_story import new_trace
from tests.contract.traces_world import TracesWorld

__all__ = ["bucket", "s3", "tables"]

DAY_MS = 86_400_000
NAMES = ("traces", "assessments", "spans")
JUDGED = {
    "assessment_name": "good",
    "source": {"source_type": "HUMAN", "source_id": "ann"},
    "feedback": {"value": True},
}


def make(experiment: str, trace: str, at: int, number: int = 1) -> None:
    """A span, with which the trace begins at a time, and an assessment."""
    parent = None if number == 1 else 1
    made = span(trace, number, parent, start=at, end=at + 1, note="root")
    assert export(experiment, [made]).status == 200
    tell("POST", f"3.0/traces/tr-{trace}/assessments", {"assessment": JUDGED})


def delete(experiment: str, *found: str) -> int:
    body = {"experiment_id": experiment, "request_ids": [f"tr-{trace}" for trace in found]}
    deleted: int = tell("POST", "2.0/traces/delete-traces", body)["traces_deleted"]
    return deleted


def publish(records: list[Any]) -> None:
    if records:
        lander.handler({"Records": records}, None)
    pytest.importorskip("mltables.publisher").publish()


def ids(seen: Tables) -> list[list[str]]:
    return [sorted({row["trace_id"] for row in seen.rows(name)}) for name in NAMES]


class Lost:
    """A trace whose rows are where no record after its deletion says: it is deleted when its new
    time has landed but is not published."""

    def __init__(self, store: Store, tables: Tables, days: int) -> None:
        self.tables = tables
        self.experiment = store.api.new_experiment("deleted soon")
        self.trace, self.other = new_trace(), new_trace()
        for made in (self.trace, self.other):
            make(self.experiment, made, days * DAY_MS, number=2)
            tables.follow()
        root = span(self.trace, 1, start=0, end=days * DAY_MS + 2, note="root")
        assert export(self.experiment, [root]).status == 200
        moved = tables.stream.fresh()
        assert delete(self.experiment, self.trace) == 1
        publish(moved)
        assert ids(tables) == [sorted(f"tr-{each}" for each in (self.trace, self.other))] * 3


@pytest.mark.parametrize("days", [0, 1, 40])
def test_a_trace_that_is_deleted_before_its_new_time_is_published_leaves_no_row(
    store: Store, tables: Tables, days: int
) -> None:
    """The step that reads the new time finds no trace; the deletion names the new time only."""
    lost = Lost(store, tables, days)
    tables.follow()
    assert ids(tables) == [[f"tr-{lost.other}"]] * 3


@pytest.mark.parametrize("elsewhere", [False, True], ids=["there", "in another experiment"])
def test_a_trace_that_is_made_again_has_no_row_of_before(
    store: Store, tables: Tables, elsewhere: bool
) -> None:
    lost = Lost(store, tables, 40)
    experiment = store.api.new_experiment("again") if elsewhere else lost.experiment
    make(experiment, lost.trace, 80 * DAY_MS)
    tables.follow()
    for name in NAMES:
        (row,) = (row for row in tables.rows(name) if row["trace_id"] == f"tr-{lost.trace}")
        assert (row["experiment_id"], row["request_date"]) == (experiment, "2024-02-02")
    assert delete(experiment, lost.trace) == 1
    tables.follow()
    assert ids(tables) == [[f"tr-{lost.other}"]] * 3


def end(store: Store, experiment: str, trace: str) -> None:
    """Lets the end of a trace pass. DynamoDB has not removed it yet, but its spans are not read."""
    key = keys.trace(experiment, f"tr-{trace}")
    store.direct.update_item(
        TableName=store.table,
        Key={"PK": {"S": key.pk}, "SK": {"S": key.sk}},
        UpdateExpression="SET #t = :one",
        ExpressionAttributeNames={"#t": "ttl"},
        ExpressionAttributeValues={":one": {"N": "1"}},
    )


def begin_earlier(experiment: str, trace: str, at: int, number: int = 1) -> None:
    parent = None if number == 1 else 1
    made = span(trace, number, parent, start=at, end=at + 2, note="root")
    assert export(experiment, [made]).status == 200


@pytest.mark.parametrize("backfilled", [False, True], ids=["told", "backfilled"])
def test_spans_that_cannot_be_read_move_with_their_trace_and_go_with_it(
    store: Store, tables: Tables, backfilled: bool
) -> None:
    """They stay as they are, but not at a time that a deletion does not name. A backfill does not
    name the time that they have."""
    experiment, trace = store.api.new_experiment("ends"), new_trace()
    make(experiment, trace, 40 * DAY_MS, number=2)
    tables.follow()
    end(store, experiment, trace)
    begin_earlier(experiment, trace, 0)
    if backfilled:
        tables.stream.fresh()
        pytest.importorskip("mltables.backfill").backfill()
    else:
        tables.follow()
    days = {name: [row["request_date"] for row in tables.rows(name)] for name in NAMES}
    assert days == {name: ["2023-11-14"] for name in NAMES}
    assert delete(experiment, trace) == 1
    tables.follow()
    assert ids(tables) == [[]] * 3


def test_a_span_that_stands_at_two_times_is_moved_once(store: Store, tables: Tables) -> None:
    """The record of the last change was published before that of the change before it."""
    experiment, trace = store.api.new_experiment("twice"), new_trace()
    make(experiment, trace, 80 * DAY_MS, number=2)
    tables.follow()
    begin_earlier(experiment, trace, 40 * DAY_MS, number=3)
    first = tables.stream.fresh()
    begin_earlier(experiment, trace, 0)
    publish(tables.stream.fresh())
    child = f"{2:016x}"

    def days() -> list[str]:
        return sorted(row["request_date"] for row in tables.rows("spans") if child in str(row))

    assert set(days()) >= {"2023-11-14", "2024-02-02"}
    end(store, experiment, trace)
    publish([*first, *tables.stream.fresh()])
    spans = sorted((row["span_id"], row["request_date"]) for row in tables.rows("spans"))
    assert [day for _, day in spans] == ["2023-11-14"] * 3
    assert len({name for name, _ in spans}) == 3


def test_spans_are_moved_in_batches_of_a_bounded_size(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is a commit, and holds so many spans in memory."""
    experiment, made = store.api.new_experiment("large"), [new_trace() for _ in range(4)]
    for trace in made:
        make(experiment, trace, 40 * DAY_MS, number=2)
    tables.follow()
    for trace in made:
        end(store, experiment, trace)
        begin_earlier(experiment, trace, 0)

    def commits() -> int:
        return deltalake.DeltaTable(storage.table_uri("spans")).version()

    monkeypatch.setattr("mltables.span_staging.BATCH_BYTES", 1)
    before = commits()
    tables.follow()
    assert commits() == before + len(made)
    assert [row["request_date"] for row in tables.rows("spans")] == ["2023-11-14"] * len(made)


@pytest.mark.xdist_group("system tables in S3")
@pytest.mark.parametrize("fits", [True, False], ids=["one file fits", "none fits"])
def test_a_search_that_does_not_fit_the_disk_stops_no_publication(
    store: Store, bucket: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fits: bool
) -> None:
    """It takes one file after the other; if not one fits, the rows stay, and others are
    published."""
    experiment = store.api.new_experiment("crowded")
    # So no file is left out by the bounds of its ids.
    pairs = [(f"1{new_trace()[1:]}", f"e{new_trace()[1:]}") for _ in range(4)]
    pairs[-1] = (f"5{new_trace()[1:]}", f"6{new_trace()[1:]}")
    for number, pair in enumerate(pairs):
        for trace in pair:
            make(experiment, trace, 40 * (number + 1) * DAY_MS, number=2)
        bucket.follow()
    sizes = [file.size for file in storage.store().below("system/mlflow") if "date=" in file.key]
    assert len(sizes) == 4 * len(NAMES)
    lost = pairs[-1][0]
    begin_earlier(experiment, lost, 0)
    moved = bucket.stream.fresh()
    assert delete(experiment, lost) == 1
    publish(moved)
    late = new_trace()
    make(experiment, late, 0)
    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / "empty"))
    monkeypatch.setattr("mltables.lake.IDS_BYTES", max(sizes) + 8192 if fits else 0)
    bucket.follow()
    there = {f"tr-{trace}" for trace in (late, *sum(pairs, ()))}
    if fits:
        there.remove(f"tr-{lost}")
    assert [{row["trace_id"] for row in rows(name)} for name in NAMES] == [there] * 3


def test_files_that_do_not_fit_the_disk_stop_no_publication(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files in which a deleted trace was found are left out then."""
    lake = pytest.importorskip("mltables.lake")
    lost = Lost(store, tables, 40)
    late = new_trace()
    make(lost.experiment, late, 0)
    paths = lake.Lake.paths

    def crowded(self: Any, name: str, table: Any, files: Sequence[str]) -> list[str]:
        if any("2023-12-24" in file for file in files):
            raise lake.NoRoom("no room for that day")
        found: list[str] = paths(self, name, table, files)
        return found

    with monkeypatch.context() as context:
        context.setattr(lake.Lake, "paths", crowded)
        tables.follow()
    everything = sorted(f"tr-{each}" for each in (lost.trace, lost.other, late))
    assert ids(tables) == [everything] * 3
    system_tables.forget(lost.experiment, [f"tr-{lost.trace}"])
    publish([])
    everything.remove(f"tr-{lost.trace}")
    assert ids(tables) == [everything] * 3


class Expired:
    """A trace that expired, with its experiment, another one, and traces that exist in both."""

    def __init__(self, store: Store, tables: Tables) -> None:
        self.world = TracesWorld(store, 3)
        self.world.new_experiment()
        self.world.new_experiment()
        for _ in range(6):
            self.world.create()
            self.world.judge()
        tables.follow()
        self.world.expire()
        publish(self.world.completed(tables.stream.fresh()))
        [(self.experiment, self.trace)] = self.world.expired
        (self.other,) = self.world.workspaces.keys() - {self.experiment}
        self.there = self.of(self.experiment)
        self.everything = ids(tables)
        assert self.trace in self.everything[0]

    def of(self, experiment: str) -> list[str]:
        traces = self.world.traces.items()
        return [key for key, state in traces if state["experiment"] == experiment]

    def left(self) -> list[list[str]]:
        """The ids in the tables after the rows of the expired trace are gone."""
        return [[key for key in each if key != self.trace] for each in self.everything]


def test_rows_of_expired_traces_are_forgotten_on_request(store: Store, tables: Tables) -> None:
    """Not those of traces that exist, and not those of the same id in another experiment."""
    made = Expired(store, tables)
    system_tables.forget(made.other, [made.trace, "tr-0", "it's"])
    publish(tables.stream.fresh())
    assert ids(tables) == made.everything
    for _ in range(2):
        system_tables.forget(made.experiment, [made.trace, *made.there])
        publish([])
        assert ids(tables) == made.left()


def ask_to_delete(experiment: str, trace_ids: list[str], workspace: str | None = None) -> Any:
    body = {"experiment_id": experiment, "request_ids": trace_ids}
    headers = {"x-mlflow-workspace": workspace} if workspace else {}
    answer = ask("POST", "3.0/traces/delete-traces", body, headers)
    return answer.status, answer.body


def test_a_request_that_deletes_an_expired_trace_removes_its_rows(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only with its experiment and the workspace of this. The answer says nothing about rows."""
    made = Expired(store, tables)
    monkeypatch.setenv("MLFLOW_ENABLE_WORKSPACES", "true")
    strange = ["tr-0", "it's", "tr-\x00", "a/b", "", '{"x": 1}', "x" * 70_000]
    mine = [made.trace, *strange]
    for experiment, workspace in (
        (made.other, "default"),
        (made.experiment, "team"),
        ("999999", "default"),
    ):
        assert ask_to_delete(experiment, mine, workspace) == (200, {"traces_deleted": 0})
    assert ask_to_delete(made.other, made.there) == (200, {"traces_deleted": 0})
    publish(tables.stream.fresh())
    assert ids(tables) == made.everything
    for _ in range(2):
        assert ask_to_delete(made.experiment, mine) == (200, {"traces_deleted": 0})
        publish(tables.stream.fresh())
        assert ids(tables) == made.left()


def test_a_removal_that_arrives_late_spares_a_trace_that_was_made_again(
    store: Store, tables: Tables
) -> None:
    """Its rows of before go, those of now stay. Of the same deletion only the ids are stored."""
    made = Expired(store, tables)
    trace = made.trace.removeprefix("tr-")
    assert delete(made.experiment, trace) == 0
    asked = tables.stream.fresh()
    make(made.experiment, trace, 300 * DAY_MS)
    publish(tables.stream.fresh())
    publish(asked)
    for name in NAMES:
        (row,) = (row for row in tables.rows(name) if row["trace_id"] == made.trace)
        assert row["request_date"] == "2024-09-09"


def test_deletions_of_traces_that_exist_leave_no_further_item(store: Store) -> None:
    """Those of ids that do not exist leave one, which ends by itself, however often repeated."""
    experiment, trace = store.api.new_experiment("items"), new_trace()
    assert export(experiment, [span(trace, 1, None, start=0, end=1)]).status == 200
    partition = keys.experiment(experiment).pk

    def left() -> list[Any]:
        stored = store.direct.query(
            TableName=store.table,
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": {"S": partition}},
        )
        return [item for item in stored["Items"] if item["type"]["S"] == "trace_removal"]

    assert delete(experiment, trace) == 1
    assert left() == []
    many = [f"tr-{number}" for number in range(1500)]
    for _ in range(2):
        assert ask_to_delete(experiment, many) == (200, {"traces_deleted": 0})
    (item,) = left()
    assert len(item["trace_ids"]["SS"]) == row_removal_requests.MOST_IDS
    assert 0 < int(item["ttl"]["N"]) - time.time() <= row_removal_requests.KEPT_SECONDS
