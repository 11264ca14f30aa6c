"""Deleted traces leave no row in the system tables, wherever their rows were."""

from __future__ import annotations

from typing import Any

import pytest

from lander import app as lander
from mlcore.db import keys
from operate import system_tables
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import export, span, tell
from tests.contract.trace_story import new_trace
from tests.contract.traces_world import TracesWorld

__all__ = ["tables"]

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


def test_spans_that_cannot_be_read_move_with_their_trace_and_go_with_it(
    store: Store, tables: Tables
) -> None:
    """The end of the trace has passed, and DynamoDB has not removed it yet. So its spans stay as
    they are, but not at a time that a deletion does not name."""
    experiment, trace = store.api.new_experiment("ends"), new_trace()
    make(experiment, trace, 40 * DAY_MS, number=2)
    tables.follow()
    key = keys.trace(experiment, f"tr-{trace}")
    store.direct.update_item(
        TableName=store.table,
        Key={"PK": {"S": key.pk}, "SK": {"S": key.sk}},
        UpdateExpression="SET #t = :one",
        ExpressionAttributeNames={"#t": "ttl"},
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    assert export(experiment, [span(trace, 1, start=0, end=2, note="root")]).status == 200
    tables.follow()
    days = {name: [row["request_date"] for row in tables.rows(name)] for name in NAMES}
    assert days == {name: ["2023-11-14"] for name in NAMES}
    assert delete(experiment, trace) == 1
    tables.follow()
    assert ids(tables) == [[]] * 3


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
