"""Deleted traces leave no row in the system tables, wherever their rows were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import deltalake
import pytest

from lander import app as lander
from mlcore.db import keys
from mlcore.system_tables import location
from operate import system_tables
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.lake_in_s3 import bucket, rows, s3
from tests.contract.trace_calls import export, span, tell
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
        return deltalake.DeltaTable(location.table_uri("spans")).version()

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
    sizes = [file.size for file in location.store().below("system/mlflow") if "date=" in file.key]
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


def test_rows_of_expired_traces_are_forgotten_on_request(store: Store, tables: Tables) -> None:
    """Not those of traces that exist, and not those of the same id in another experiment."""
    world = TracesWorld(store, 3)
    world.new_experiment()
    world.new_experiment()
    for _ in range(6):
        world.create()
        world.judge()
    tables.follow()
    world.expire()
    publish(world.completed(tables.stream.fresh()))
    [(experiment, expired)] = world.expired
    everything = ids(tables)
    assert expired in everything[0]
    there = [key for key, state in world.traces.items() if state["experiment"] == experiment]
    (other,) = world.workspaces.keys() - {experiment}
    assert delete(experiment, expired.removeprefix("tr-")) == 0  # the API does not know it
    system_tables.forget(other, [expired, "tr-0", "it's"])
    publish(tables.stream.fresh())
    assert ids(tables) == everything
    for _ in range(2):
        system_tables.forget(experiment, [expired, *there])
        publish([])
        assert ids(tables) == [[key for key in each if key != expired] for each in everything]
