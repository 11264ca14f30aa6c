"""Two publishers at once, one of which reads before a change that the other publishes: the older
state does not come back. What is read again for that is as little as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lander import app as lander
from mlcore.entities.workspaces import Workspace
from mlcore.repos.removal import workspace_moves
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables import run_source, trace_source
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.publisher_kills import Killed
from tests.contract.trace_calls import export, span, start, tell

__all__ = ["tables"]


def _between(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], None]
) -> None:
    """Lets ``act`` happen once, after the first call of a function that reads DynamoDB."""
    read, left = getattr(module, name), [act]

    def reading(*given: Any) -> Iterator[Any]:
        results = list(read(*given))
        if left:
            left.pop()()
        return iter(results)

    monkeypatch.setattr(module, name, reading)


def test_a_run_moved_there_and_back_stays_where_it_is(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = pytest.importorskip("mltables.publisher")
    workspaces.create(Workspace("second", None))
    experiment = store.api.new_experiment("moving")
    run = store.api.new_run(experiment)
    store.api.post("runs/log-metric", run_id=run, key="m", value=1, step=1, timestamp=1)
    records = tables.stream.fresh()
    lander.handler({"Records": records}, None)
    publisher.publish()
    lander.handler({"Records": records}, None)  # delivered again
    workspace_moves.experiment(experiment, "second")

    def back() -> None:
        workspace_moves.experiment(experiment, "default")
        lander.handler({"Records": tables.stream.fresh()}, None)
        publisher.publish()

    _between(monkeypatch, run_source, "find_runs", back)
    publisher.publish()
    for table in ("runs_latest", "run_metrics_history", "experiments_latest"):
        places = {
            row["workspace_id"] for row in tables.rows(table) if row["experiment_id"] == experiment
        }
        assert places == {"default"}, table
    assert list(pytest.importorskip("mltables.verification").verify()) == []


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_trace_that_changed_meanwhile_has_its_last_state(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    """
    Args:
        is_deleted: whether the trace is new and then deleted, or a tag changes and changes back.
    """
    publisher = pytest.importorskip("mltables.publisher")
    experiment, trace_id = store.api.new_experiment("traced"), f"tr-{7:032x}"

    def tag(value: str) -> None:
        tell("PATCH", f"3.0/traces/{trace_id}/tags", {"key": "t", "value": value})

    tell("POST", "3.0/traces", start(experiment, trace_id, state="OK"))
    assert export(experiment, [span(f"{7:032x}", 1)]).status == 200
    tag("first")
    records = tables.stream.fresh()
    lander.handler({"Records": records}, None)
    if not is_deleted:
        publisher.publish()
        lander.handler({"Records": records}, None)  # delivered again
        tag("second")

    def change() -> None:
        if is_deleted:
            body = {"experiment_id": experiment, "request_ids": [trace_id]}
            tell("POST", "2.0/traces/delete-traces", body)
        else:
            tag("first")
        lander.handler({"Records": tables.stream.fresh()}, None)
        publisher.publish()

    _between(monkeypatch, trace_source, "find_traces", change)
    publisher.publish()
    tags = [{tag["key"]: tag["value"] for tag in row["tags"]}["t"] for row in tables.rows("traces")]
    assert tags == ([] if is_deleted else ["first"])
    assert list(pytest.importorskip("mltables.verification").verify()) == []


def test_deleted_runs_are_read_again_only_if_their_experiment_was_deleted(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An experiment that is written often may have many deleted runs."""
    experiment = store.api.new_experiment("e")
    deleted = store.api.new_run(experiment)
    store.api.post("runs/delete", run_id=deleted)
    tables.follow()
    find_runs, places_read = run_source.find_runs, []

    def counting(places: Any, known: Any) -> Any:
        places_read.extend(places)
        return find_runs(places, known)

    monkeypatch.setattr(run_source, "find_runs", counting)

    def rename(name: str) -> None:
        store.api.post("experiments/update", experiment_id=experiment, new_name=name)
        assert tables.follow().experiments == 1

    rename("other")
    assert places_read == []
    store.api.post("experiments/delete", experiment_id=experiment)
    store.api.post("experiments/restore", experiment_id=experiment)
    tables.follow()
    assert places_read == [(experiment, deleted)]
    (row,) = tables.rows("runs_latest")
    is_deleted = store.api.run(deleted)["info"]["lifecycle_stage"] == "deleted"
    assert (row["delete_time"] is not None) == is_deleted


def test_runs_come_back_if_another_publisher_was_first_with_the_restoration(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publisher reads a deleted experiment. Before it commits the runs, the experiment is
    restored, and another publisher, which is then killed, publishes that."""
    publisher = pytest.importorskip("mltables.publisher")
    step = pytest.importorskip("mltables.publish_step").PublishStep
    writable_table = pytest.importorskip("mltables.writable_table")
    experiment = store.api.new_experiment("e")
    run = store.api.new_run(experiment)
    tables.follow()
    store.api.post("experiments/delete", experiment_id=experiment)
    touch, left = step._touch_runs_of_moved, [True]

    def touching(self: Any, *given: Any) -> None:
        touch(self, *given)
        if left:
            left.pop()
            store.api.post("experiments/restore", experiment_id=experiment)
            lander.handler({"Records": tables.stream.fresh()}, None)
            with monkeypatch.context() as patch:
                patch.setattr(writable_table.WritableTable, "finish_step", dying)
                with pytest.raises(Killed):
                    publisher.publish()

    def dying(_table: Any) -> None:
        raise Killed

    monkeypatch.setattr(step, "_touch_runs_of_moved", touching)
    tables.follow()
    rows = {row["run_id"]: row["delete_time"] for row in tables.rows("runs_latest")}
    assert rows == {run: None}
