"""Past versions of tables in SQL: values as they were, with the rights of today, and nothing that
was removed since."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.evaluation.jobs import Creator
from mlcore.entities.workspaces import Workspace
from mlcore.errors import InvalidParameterValue
from mlcore.repos.evaluation import jobs
from mlcore.repos.removal import permanent_deletion, workspace_moves
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables import storage
from tests.contract import evaluation_calls, registry_calls, stored_job
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import export, span, tell

__all__ = ["tables"]

RUNS = "system.mlflow.runs_latest"
TEAM = ["team"]
EVERYWHERE = ["default", "team"]


def now() -> str:
    """The time, later than all commits until now and before those that follow."""
    time.sleep(0.02)
    moment = datetime.now(UTC).isoformat()
    time.sleep(0.02)
    return moment


def finish(store: Store, run: str, status: str = "FINISHED") -> None:
    store.api.post("runs/update", run_id=run, status=status, end_time=1)


@pytest.fixture
def run(store: Store, tables: Tables) -> str:
    """A run with one point, published while it was running."""
    made = store.api.new_run(store.api.new_experiment("e"))
    store.api.post("runs/log-metric", run_id=made, key="m", value=1, step=1, timestamp=1)
    tables.follow()
    return made


@pytest.mark.parametrize("readable", [None, ["default"], EVERYWHERE])
def test_values_are_as_they_were(
    store: Store, tables: Tables, run: str, readable: list[str] | None
) -> None:
    first = now()
    finish(store, run)
    tables.follow()
    second = now()
    finish(store, run, "FAILED")
    store.api.post("runs/log-metric", run_id=run, key="m", value=2, step=2, timestamp=2)
    tables.follow()

    def rows(sql: str, **parameters: Any) -> Any:
        return tables.ask(sql, readable, **parameters)["rows"]

    for form in (
        f"TIMESTAMP AS OF '{first}'",
        "FOR TIMESTAMP AS OF :t",
        "FOR SYSTEM_TIME AS OF :t",
    ):
        values = {"t": first} if ":t" in form else {}
        assert rows(f"SELECT status FROM {RUNS} {form}", **values) == [["RUNNING"]]
    assert rows(f"SELECT status FROM {RUNS}") == [["FAILED"]]
    assert rows(f"SELECT status FROM {RUNS} TIMESTAMP AS OF now()") == [["FAILED"]]
    joined = (
        f"SELECT old.status, middle.status, {RUNS}.status "
        f"FROM {RUNS} TIMESTAMP AS OF :first AS old "
        f"JOIN {RUNS} TIMESTAMP AS OF :second AS middle USING (run_id) JOIN {RUNS} USING (run_id)"
    )
    assert rows(joined, first=first, second=second) == [["RUNNING", "FINISHED", "FAILED"]]
    history = "SELECT count(*) FROM system.mlflow.run_metrics_history TIMESTAMP AS OF :t"
    assert [rows(history, t=moment) for moment in (first, now())] == [[[1]], [[2]]]
    bounded = f"SELECT * FROM {RUNS} TIMESTAMP AS OF :t WHERE run_id = :run"
    assert rows(bounded, t=first, run=run)[0].count("RUNNING") == 1
    assert rows(bounded, t=first, run="other") == []


def test_before_the_first_publication_there_is_nothing(
    store: Store, tables: Tables, run: str
) -> None:
    past = (datetime.now(UTC) - timedelta(hours=2)).isoformat()
    assert tables.ask(f"SELECT count(*) FROM {RUNS} TIMESTAMP AS OF '{past}'")["rows"] == [[0]]
    traces = "SELECT count(*) FROM system.mlflow.traces TIMESTAMP AS OF now()"
    assert tables.ask(traces, ["default"])["rows"] == [[0]]


def test_what_was_removed_does_not_come_back(store: Store, tables: Tables, run: str) -> None:
    kept_run = store.api.new_run(store.api.new_experiment("kept"))
    gone = store.api.new_experiment("gone")
    lost = store.api.new_run(gone)
    trace = f"{7:032x}"
    export(gone, [span(trace, 1)])
    trace_id = f"tr-{trace}"
    kept = f"{8:032x}"
    export(gone, [span(kept, 1)])
    feedback = {
        "assessment_name": "good",
        "trace_id": f"tr-{kept}",
        "source": {"source_type": "HUMAN", "source_id": "me"},
        "feedback": {"value": 1},
    }
    made = tell("POST", f"3.0/traces/tr-{kept}/assessments", {"assessment": feedback})
    assessment = made["assessment"]["assessment_id"]
    tables.follow()
    moment = now()

    def seen(readable: list[str] | None) -> dict[str, Any]:
        counts = {}
        for name in (
            *("runs_latest", "run_metrics_history", "experiments_latest", "traces"),
            *("assessments", "spans"),
        ):
            sql = f"SELECT count(*) FROM system.mlflow.{name} TIMESTAMP AS OF :t"
            ((counts[name],),) = tables.ask(sql, readable, t=moment)["rows"]
        return counts

    before = {
        "runs_latest": 3,
        "run_metrics_history": 1,
        "experiments_latest": 3,
        "traces": 2,
        "assessments": 1,
        "spans": 2,
    }
    for readable in (None, ["default"]):
        assert seen(readable) == before
    store.api.post("runs/delete", run_id=run)
    (experiment,) = tables.ask(f"SELECT experiment_id FROM {RUNS} WHERE run_id = :r", r=run)[
        "rows"
    ][0]
    permanent_deletion.run(experiment, run, "default")
    tell("POST", "3.0/traces/delete-traces", {"experiment_id": gone, "request_ids": [trace_id]})
    tell("DELETE", f"3.0/traces/tr-{kept}/assessments/{assessment}")
    tables.follow()
    after = {**before, "runs_latest": 2, "run_metrics_history": 0, "traces": 1, "spans": 1}
    for readable in (None, ["default"]):
        assert seen(readable) == {**after, "assessments": 0}
    store.api.post("experiments/delete", experiment_id=gone)
    permanent_deletion.experiment(gone)
    tables.follow()
    nothing = dict.fromkeys(before, 0)
    for readable in (None, ["default"]):
        assert seen(readable) == {**nothing, "runs_latest": 1, "experiments_latest": 2}
    rows = tables.ask(f"SELECT run_id FROM {RUNS} TIMESTAMP AS OF '{moment}'")["rows"]
    assert rows == [[kept_run]]
    assert lost not in str(rows)


def test_the_rights_are_those_of_today(store: Store, tables: Tables, run: str) -> None:
    """Rows that were in a workspace when it was another one, or before a move, are not its
    readers'."""
    workspaces.create(Workspace("team", None))
    (experiment,) = tables.ask(f"SELECT experiment_id FROM {RUNS}")["rows"][0]
    in_default = now()
    workspace_moves.experiment(experiment, "team")
    tables.follow()
    in_team = now()
    count = f"SELECT count(*) FROM {RUNS} TIMESTAMP AS OF :t"
    named = f"SELECT workspace_id FROM {RUNS} TIMESTAMP AS OF :t"
    for moment in (in_default, in_team):
        assert tables.ask(count, ["default"], t=moment)["rows"] == [[0]]
        assert tables.ask(count, TEAM, t=moment)["rows"] == [[1]]
    assert tables.ask(named, TEAM, t=in_default)["rows"] == [["default"]]
    workspace_moves.experiment(experiment, "default")
    tables.follow()
    for moment in (in_default, in_team):
        assert tables.ask(count, TEAM, t=moment)["rows"] == [[0]]
        assert tables.ask(count, ["default"], t=moment)["rows"] == [[1]]
        assert tables.ask(count, [], t=moment)["rows"] == [[0]]


def test_upkeep_keeps_what_may_be_read(store: Store, tables: Tables, run: str) -> None:
    from mltables import table_maintenance  # noqa: PLC0415

    first = now()
    for step in range(20):
        store.api.post(
            "runs/log-metric", run_id=run, key="m", value=step, step=9, timestamp=step + 9
        )
        tables.follow()
    table_maintenance.maintain_tables()
    count = "SELECT count(*) FROM system.mlflow.run_metrics_history TIMESTAMP AS OF :t"
    assert tables.ask(count, t=first)["rows"] == [[1]]
    assert tables.ask(count, t=now())["rows"] == [[21]]


def test_versions_are_for_who_reads_all(store: Store, tables: Tables, run: str) -> None:
    finish(store, run)
    tables.follow()
    status = f"SELECT status FROM {RUNS} VERSION AS OF "
    assert tables.ask(f"{status} 0")["rows"] == []
    assert [tables.ask(f"{status} {n}")["rows"] for n in (1, 2)] == [[["RUNNING"]], [["FINISHED"]]]
    assert tables.ask(f"{status} :v", v=1)["rows"] == [["RUNNING"]]
    for readable in ([], ["default"], EVERYWHERE):
        with pytest.raises(InvalidParameterValue, match="right to read all rows"):
            tables.ask(f"{status} 1", readable)
    with pytest.raises(InvalidParameterValue, match="names no version"):
        tables.ask(f"{status} 99")
    with pytest.raises(InvalidParameterValue, match="names no version"):
        tables.ask(f"{status} -1")
    for wrong in ("'x'", "'2026-01-01'", "date('2026-01-01')"):
        with pytest.raises(InvalidParameterValue, match="is no number"):
            tables.ask(f"{status} {wrong}")


def test_a_version_older_than_the_retention_is_refused(
    store: Store, tables: Tables, run: str
) -> None:
    finish(store, run)
    tables.follow()
    log = Path(storage.table_uri("runs_latest")) / "_delta_log"
    days_ago = time.time() - 3 * 86_400
    for number in (0, 1):
        os.utime(log / f"{number:020}.json", (days_ago, days_ago))
    status = f"SELECT status FROM {RUNS} VERSION AS OF "
    with pytest.raises(InvalidParameterValue, match="can be read for 23 hours"):
        tables.ask(f"{status} 0")
    # Version 1 was current until the last publication, within the time of retention.
    assert tables.ask(f"{status} 1")["rows"] == [["RUNNING"]]
    hours_ago = (datetime.now(UTC) - timedelta(hours=22)).isoformat()
    old = f"SELECT status FROM {RUNS} TIMESTAMP AS OF '{hours_ago}'"
    for readable in (None, ["default"]):
        assert tables.ask(old, readable)["rows"] == [["RUNNING"]]


NO_MOMENTS = {
    "now() - INTERVAL 24 HOURS": "can be read for 23 hours",
    "'2020-01-01'": "can be read for 23 hours",
    "now() + INTERVAL 1 HOUR": "in the future",
    "'9999-12-31'": "in the future",
    "'yesterday'": "is no time",
    "NULL": "takes a constant time",
    "5": "is no time",
    ":t": "parameter 't' has no value",
    "(SELECT max(start_time) FROM system.mlflow.runs_latest)": "takes a constant time",
    "run_id": "takes a constant time",
    "sleep(9)": "takes a constant time",
    "?": "Parameters are written",
}


def test_what_is_no_moment_is_refused(tables: Tables, run: str) -> None:
    for moment, why in NO_MOMENTS.items():
        for readable in (None, ["default"]):
            with pytest.raises(InvalidParameterValue, match=why):
                tables.ask(f"SELECT * FROM {RUNS} TIMESTAMP AS OF {moment}", readable)


NO_PAST = (
    "SELECT * FROM system.mlflow.audit_log TIMESTAMP AS OF now()",
    "SELECT * FROM system.mlflow.trace_unified TIMESTAMP AS OF now()",
    "SELECT * FROM system.mlflow.gateway_usage TIMESTAMP AS OF now()",
    "SELECT * FROM system.information_schema.tables TIMESTAMP AS OF now()",
    "WITH runs_latest AS (SELECT 1) SELECT * FROM runs_latest TIMESTAMP AS OF now()",
    "SELECT * FROM elsewhere TIMESTAMP AS OF now()",
    "SELECT * FROM runs_latest_as_of_0",
    "SELECT * FROM runs_latest@v1",
    "SELECT * FROM runs_latest@20260101000000000",
    "SELECT * FROM runs_latest TIMESTAMP BETWEEN '2026-01-01' AND now()",
    "SELECT 1 FROM "
    + ", ".join(f"runs_latest VERSION AS OF {number} AS r{number}" for number in range(5)),
)


def test_what_has_no_past_is_refused(tables: Tables, run: str) -> None:
    for sql in NO_PAST:
        with pytest.raises(InvalidParameterValue):
            pytest.fail(f"{sql}: {tables.ask(sql)}")


def test_files_that_are_gone_are_the_callers_error(store: Store, tables: Tables, run: str) -> None:
    """Somebody has vacuumed the table sooner than we do."""
    first = now()
    finish(store, run)
    tables.follow()
    folder = Path(storage.table_uri("runs_latest"))
    oldest = min(folder.rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    oldest.unlink()
    with pytest.raises(InvalidParameterValue, match="cannot be read any more"):
        tables.ask(f"SELECT * FROM {RUNS} TIMESTAMP AS OF '{first}'")
    assert tables.ask(f"SELECT status FROM {RUNS}")["rows"] == [["FINISHED"]]


def _entities(store: Store) -> tuple[str, str, str]:
    """A model with a version, a dataset with a record and a job; the ids of the last two, and the
    name of the first."""
    name = "model of the past"
    registry_calls.new_model(store.api, name, 1, description="first")
    dataset_id = evaluation_calls.new_dataset(tags=json.dumps({"state": "first"}))
    evaluation_calls.upsert(dataset_id, {"inputs": {"q": 1}, "outputs": "first"})
    job = jobs.new("default", "invoke_scorer", {}, 3, Creator("ann"))
    stored_job.store(job)
    return name, dataset_id, job.job_id


OF_ENTITIES = {
    "registered_models": "description",
    "model_versions": "current_stage",
    "evaluation_datasets": "tags['state']",
    "evaluation_dataset_records": "outputs",
    "jobs": "status",
}
"""What changes in each table of other entities."""


def _past(tables: Tables, readable: list[str] | None, moment: str) -> dict[str, list[Any]]:
    return {
        name: [
            value
            for (value,) in tables.ask(
                f"SELECT {column} FROM system.mlflow.{name} FOR TIMESTAMP AS OF :t",
                readable,
                t=moment,
            )["rows"]
        ]
        for name, column in OF_ENTITIES.items()
    }


def test_models_datasets_and_jobs_are_as_they_were(store: Store, tables: Tables) -> None:
    name, dataset_id, job_id = _entities(store)
    tables.follow()
    moment = now()
    before = {
        "registered_models": ["first"],
        "model_versions": ["None"],
        "evaluation_datasets": ["first"],
        "evaluation_dataset_records": ['"first"'],
        "jobs": ["PENDING"],
    }
    api = store.api
    changed = api.ask("PATCH", "registered-models/update", name=name, description="second")
    assert changed.status == 200
    api.post("model-versions/transition-stage", name=name, version="1", stage="Staging")
    tags = json.dumps({"state": "second"})
    evaluation_calls.sent("PATCH", f"datasets/{dataset_id}/tags", {"tags": tags})
    evaluation_calls.upsert(dataset_id, {"inputs": {"q": 1}, "outputs": "second"})
    jobs.change("default", job_id, lambda stored: stored._replace(status="RUNNING"))
    tables.follow()
    for readable in (None, ["default"], EVERYWHERE):
        assert _past(tables, readable, moment) == before
        assert _past(tables, readable, now()) == {
            "registered_models": ["second"],
            "model_versions": ["Staging"],
            "evaluation_datasets": ["second"],
            "evaluation_dataset_records": ['"second"'],
            "jobs": ["RUNNING"],
        }
    nothing: dict[str, list[Any]] = {name: [] for name in OF_ENTITIES}
    for readable in ([], TEAM):
        assert _past(tables, readable, moment) == nothing
    evaluation_calls.sent("DELETE", f"datasets/{dataset_id}")
    assert api.ask("DELETE", "registered-models/delete", name=name).status == 200
    table.delete(keys.job("default", job_id))
    tables.follow()
    for readable in (None, ["default"]):
        assert _past(tables, readable, moment) == nothing
    # A model of the same name is another one.
    registry_calls.new_model(api, name, 1, description="other")
    tables.follow()
    for readable in (None, ["default"]):
        assert _past(tables, readable, moment) == nothing
