"""A random history of writes, landed and published under every kind of accident, ends in tables
that say what was done: each row once."""

from __future__ import annotations

import math
import os
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lander import app as lander
from mlcore.entities.metrics import Metric
from mlcore.entities.workspaces import Workspace
from mlcore.repos.removal import workspace_moves
from mlcore.repos.runs.history import metric_history
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables import backfill_landing, landing_objects, storage
from mlcore.system_tables.landing_objects import Changed
from operate import system_tables as operated
from operate.module_loading import CannotRun
from tests.contract.conftest import Store
from tests.contract.delta_readers import by_our_sql, by_polars, by_the_extension
from tests.contract.index_state import deliver
from tests.contract.lake import Tables, tables
from tests.contract.publisher_kills import Accidents, Killed, kill, publish_twice_at_once
from tests.contract.removals import remove_run
from tests.contract.tables_world import World

__all__ = ["kill", "tables"]

OPERATIONS = int(os.environ.get("TABLES_OPERATIONS", "60"))


def published(tables: Tables, expected_runs: dict[str, Any]) -> tuple[Any, Any, Any]:
    experiments = {
        row["experiment_id"]: (row["name"], row["delete_time"] is not None, row["workspace_id"])
        for row in tables.rows("experiments_latest")
    }
    assert len(experiments) == len(tables.rows("experiments_latest"))
    points = sorted(
        (
            row["run_id"],
            row["workspace_id"],
            row["metric_name"],
            row["metric_step"],
            int(row["metric_time"].timestamp() * 1000),
            repr(row["metric_value"]),
        )
        for row in tables.rows("run_metrics_history")
    )
    runs = {}
    rows = tables.rows("runs_latest")
    for row in rows:
        expected = expected_runs.get(row["run_id"], (None,) * 6)[5] or {}
        runs[row["run_id"]] = (
            row["experiment_id"],
            row["workspace_id"],
            row["status"],
            row["delete_time"] is not None,
            {param["key"]: param["value"] for param in row["params"]},
            {
                aggregated_metric["metric_name"]: (
                    "either"
                    if expected.get(aggregated_metric["metric_name"], ("",))[0] == "either"
                    else repr(aggregated_metric["latest_value"]),
                    repr(aggregated_metric["min_value"]),
                    repr(aggregated_metric["max_value"]),
                )
                for aggregated_metric in row["aggregated_metrics"]
            },
        )
    assert len(runs) == len(rows)
    return experiments, runs, points


def test_a_random_history_is_published_once(
    store: Store, tables: Tables, kill: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = pytest.importorskip("mltables.publisher")
    upkeep = pytest.importorskip("mltables.table_maintenance")
    # So small that a step has several parts, and a month several files.
    monkeypatch.setattr("mltables.publish_step.RUNS_TOGETHER", 4)
    monkeypatch.setattr("mltables.run_publishing.FULL_FILE_ROWS", 2)
    seed = int(os.environ.get("TABLES_SEED", "1"))
    world = World(store, seed)
    rng = random.Random(seed + 1)
    waiting: list[Any] = []
    done: list[Any] = []

    accidents = Accidents(rng, kill)

    for number in range(OPERATIONS):
        world.step()
        if rng.random() < 0.15:
            fresh = tables.stream.fresh()
            waiting += fresh
            if rng.random() < 0.5 and fresh:
                deliver(fresh, None)  # the indexer packs batches, whose packs are records too
        if rng.random() < 0.1 and waiting:
            due, waiting = waiting[: len(waiting) // 2 + 1], waiting[len(waiting) // 2 + 1 :]
            again = rng.sample(done, min(3, len(done)))
            accidents.during(partial(accidents.land, again + due))
            done += due
        if rng.random() < 0.06:
            accidents.during(publisher.publish)
        if number % 60 == 59:
            upkeep.maintain_tables(today="2000-01-01" if rng.random() < 0.5 else "9999-12-31")
    waiting += tables.stream.fresh()
    accidents.land(waiting)
    publish_twice_at_once(publisher)
    publisher.publish()
    expected = world.expected()
    assert published(tables, expected[1]) == expected
    upkeep.maintain_tables()
    assert published(tables, expected[1]) == expected
    differences = list(pytest.importorskip("mltables.verification").verify())
    assert differences == []


def test_backfill_brings_what_no_stream_tells(store: Store, tables: Tables) -> None:
    whole = pytest.importorskip("mltables.backfill")
    world = World(store, 7)
    world.purge = world.log
    for _ in range(60):
        world.step()
    whole.backfill()
    expected = world.expected()
    assert published(tables, expected[1]) == expected
    again = whole.backfill()
    assert set(again[1:]) == {0}
    tables.follow()
    assert published(tables, expected[1]) == expected


def test_what_is_landed_is_left_to_the_publisher(store: Store, tables: Tables) -> None:
    """A backfill that is killed after each experiment, while a publisher works, writes nothing but
    what is to be landed; and what the stream brings is published before."""
    publisher = pytest.importorskip("mltables.publisher")
    world = World(store, 11)
    world.purge = world.log
    for _ in range(60):
        world.step()

    def files() -> set[str]:
        root = tables.folder / "files"
        return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}

    through: list[str] = []
    ended = False
    while not ended:
        before = files()
        attempt = backfill_landing.land()
        through.append(next(attempt))
        ended = next(attempt, None) is None  # that one was landed, and is not in the journal
        del attempt
        assert {name.split("/")[0] for name in files() - before} <= {landing_objects.FOLDER}
        if len(through) % 2:
            publisher.publish()
    assert len(through) == len(set(through)) > 3
    assert backfill_landing.JOURNAL not in files()
    landing_objects.put(
        landing_objects.name_of("stream", "1", "1"), landing_objects.encode((), Changed((), ()))
    )
    assert [landed.key.split("/")[1] for landed in landing_objects.waiting()][:1] == ["stream"]
    publisher.publish()
    expected = world.expected()
    assert published(tables, expected[1]) == expected


def test_who_lands_needs_no_engine_and_must_name_the_files(
    store: Store,
    tables: Tables,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    experiment = store.api.new_experiment("before")
    run = store.api.new_run(experiment)
    with monkeypatch.context() as without:
        without.setattr(operated, "find_spec", lambda _: None)
        assert operated.backfill(publishes=False) == 0
        with pytest.raises(CannotRun, match="engine"):
            operated.backfill()
        without.delenv("ARTIFACT_FOLDER")
        with pytest.raises(CannotRun, match="ARTIFACT_BUCKET"):
            operated.backfill(publishes=False)
    assert f"experiment {experiment}\n" in capsys.readouterr().out
    pytest.importorskip("mltables.publisher").publish()
    assert [row["run_id"] for row in tables.rows("runs_latest")] == [run]


def test_no_statistics_hide_a_value(
    store: Store, tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NaN is the greatest value, for three readers, by whatever commit files were written last."""
    upkeep = pytest.importorskip("mltables.table_maintenance")
    monkeypatch.setattr(upkeep, "SMALL_FILES", 2)
    workspaces.create(Workspace("team", None))
    experiment = store.api.new_experiment("nan")
    run, other = store.api.new_run(experiment), store.api.new_run(experiment)
    values = (1, "NaN", 200, -5, 3, "NaN", -0.5, 8, 9, 10)

    def log(first: int, last: int) -> None:
        for step, value in enumerate(values[first:last], first):
            for run_id in (run, other):
                store.api.post(
                    "runs/log-metric",
                    run_id=run_id,
                    key="m",
                    value=value,
                    step=step,
                    timestamp=step,
                )
        tables.follow()

    def last_commit() -> dict[str, Any]:
        """By the last commit, which must be another than that of the step before."""
        last: dict[str, Any] = DeltaTable(storage.table_uri("run_metrics_history")).history(1)[0]
        return last

    def kept_up(today: str) -> tuple[str, bool]:
        """What was done, and whether rows kept their order."""
        upkeep.maintain_tables(today=today)
        return last_commit()["operation"], last_commit()["operationMetrics"][
            "preserveInsertionOrder"
        ]

    def check(steps: int, runs: tuple[str, ...]) -> None:
        expected = {
            "above": [1, 2, 5],
            "below": [3],
            "between": [0, 4, 7, 8, 9],
        }
        wanted = {
            name: sorted(
                (run_id, step) for run_id in runs for step in expected_steps if step < steps
            )
            for name, expected_steps in expected.items()
        }
        seen = by_polars()
        assert by_our_sql() == seen
        for name, places in wanted.items():
            assert len(seen[name]) == len(places), (name, last_commit())
            for run_id, step in places:
                text = f"'metric_step': {step}, "
                assert any(run_id in row and text in row for row in seen[name]), (
                    name,
                    last_commit(),
                )

    log(0, 4)
    assert last_commit()["operation"] == "WRITE"
    check(4, (run, other))
    log(4, 8)
    assert kept_up("2000-01-01") == ("OPTIMIZE", True)
    check(8, (run, other))
    log(8, 10)
    assert kept_up("9999-12-31") == ("OPTIMIZE", False)
    check(10, (run, other))
    version = last_commit()["version"]
    workspace_moves.experiment(experiment, "team")
    tables.follow()
    assert (last_commit()["operation"], last_commit()["version"]) == ("WRITE", version + 1)
    check(10, (run, other))
    remove_run(other, experiment, "team")
    tables.follow()
    assert (last_commit()["operation"], last_commit()["version"]) == ("WRITE", version + 2)
    check(10, (run,))
    assert by_the_extension(tmp_path / "read") == by_polars()
    (row,) = tables.rows("runs_latest")
    (aggregated_metric,) = row["aggregated_metrics"]
    assert (aggregated_metric["metric_name"], aggregated_metric["latest_value"]) == ("m", 10.0)
    assert math.isnan(aggregated_metric["min_value"])
    assert math.isnan(aggregated_metric["max_value"])


def test_a_step_starts_over_when_another_publisher_comes_between_its_commits(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would go on with what it read before: a workspace that is no longer the
    experiment's."""
    publisher = pytest.importorskip("mltables.publisher")
    for name in ("second", "third"):
        workspaces.create(Workspace(name, None))
    experiment = store.api.new_experiment("moving")
    run = store.api.new_run(experiment)

    def log(step: int) -> None:
        store.api.post(
            "runs/log-metric", run_id=run, key="m", value=step, step=step, timestamp=step
        )

    log(1)
    tables.follow()
    log(2)
    workspace_moves.experiment(experiment, "second")
    lander.handler({"Records": tables.stream.fresh()}, None)
    update = DeltaTable.update_incremental
    others: list[Any] = []

    def after_another(delta: DeltaTable) -> None:
        if not others:
            others.append("begun")
            workspace_moves.experiment(experiment, "third")
            lander.handler({"Records": tables.stream.fresh()}, None)
            others.append(publisher.publish())
        update(delta)

    monkeypatch.setattr(DeltaTable, "update_incremental", after_another)
    publisher.publish()
    assert others[1].experiments == 1
    for table, rows in (("run_metrics_history", 2), ("runs_latest", 1), ("experiments_latest", 1)):
        assert [row["workspace_id"] for row in tables.rows(table)] == ["third"] * rows


def test_runs_come_back_with_an_experiment_whose_deletion_was_published_in_part(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A publisher is killed after it has committed the runs, and before the experiment."""
    step = pytest.importorskip("mltables.publish_step").PublishStep
    experiment = store.api.new_experiment("e")
    run, deleted = store.api.new_run(experiment), store.api.new_run(experiment)
    store.api.post("runs/delete", run_id=deleted)
    tables.follow()

    def is_deleted() -> dict[str, bool]:
        rows = tables.rows("runs_latest")
        return {row["run_id"]: row["delete_time"] is not None for row in rows}

    def dying(_step: Any) -> int:
        raise Killed

    store.api.post("experiments/delete", experiment_id=experiment)
    with monkeypatch.context() as patch:
        patch.setattr(step, "_publish_experiments", dying)
        with pytest.raises(Killed):
            tables.follow()
    assert is_deleted() == {run: True, deleted: True}
    store.api.post("experiments/restore", experiment_id=experiment)
    tables.follow()
    stage = store.api.run(deleted)["info"]["lifecycle_stage"]
    assert is_deleted() == {run: False, deleted: stage == "deleted"}


@pytest.mark.parametrize("published_between", [True, False])
@pytest.mark.parametrize("batch_size", [1, 100])
def test_points_of_a_refused_request_are_in_no_table(
    store: Store, tables: Tables, batch_size: int, *, published_between: bool
) -> None:
    """Wherever the stream is cut. A point that an accepted request logged, too, stays."""
    publisher = pytest.importorskip("mltables.publisher")
    run_id = store.api.new_run()
    before, after, never = (Metric("m", value, 1, 1) for value in (1.0, 2.0, 9.0))

    def follow() -> None:
        records = tables.stream.fresh()
        for at in range(0, len(records), batch_size):
            lander.handler({"Records": records[at : at + batch_size]}, None)
        publisher.publish()

    def log(point: Metric) -> None:
        fields = {"key": point.key, "value": point.value, "timestamp": 1, "step": 1}
        time.sleep(0.002)  # batches have times in milliseconds
        store.api.post("runs/log-metric", run_id=run_id, **fields)
        time.sleep(0.002)

    log(before)
    if published_between:
        follow()
    (batch,) = metric_history.batches("0", run_id, [before, after, never])
    metric_history.put([batch])
    if published_between:
        follow()
        assert len(tables.rows("run_metrics_history")) == 3
    metric_history.refuse(batch)
    log(after)
    follow()
    rows = tables.rows("run_metrics_history")
    assert sorted(row["metric_value"] for row in rows) == [1.0, 2.0]
    (run,) = tables.rows("runs_latest")
    (reach,) = run["aggregated_metrics"]
    assert (reach["min_value"], reach["max_value"]) == (1.0, 2.0)
    assert list(pytest.importorskip("mltables.verification").verify()) == []
