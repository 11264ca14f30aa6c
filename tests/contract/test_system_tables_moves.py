"""An experiment is moved to another workspace and back while publishers die: its rows end in the
workspace that it has."""

from __future__ import annotations

from typing import Any

import pytest

from lander import app as lander
from mlcore.entities.workspaces import Workspace
from mlcore.repos.removal import workspace_moves
from mlcore.repos.workspaces import workspaces
from tests.contract.conftest import STEP, Store
from tests.contract.lake import Tables, tables
from tests.contract.trace_calls import export, span, start, tell

__all__ = ["tables"]

TABLES = (
    "experiments_latest",
    "runs_latest",
    "run_metrics_history",
    "traces",
    "assessments",
    "spans",
)
COMMITS = 14
"""More than the steps of a publication have, so that the last case is one that ends."""

JUDGED = {
    "assessment_name": "good",
    "source": {"source_type": "HUMAN", "source_id": "me"},
    "feedback": {"value": True},
    "create_time": "2023-11-14T22:13:21Z",
    "last_update_time": "2023-11-14T22:13:21Z",
}


class Killed(BaseException):
    """The process is no more."""


@pytest.mark.parametrize("is_known", [True, False])
def test_a_kill_between_two_commits_leaves_no_row_in_another_workspace(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """
    Args:
        is_known: whether the experiment was published before it is moved.
    """
    publisher = pytest.importorskip("mltables.publisher")
    verification = pytest.importorskip("mltables.verification")
    change = pytest.importorskip("mltables.table_commit").TableCommit
    whole = change.commit
    left = [0]
    misplaced = 0

    def commit(self: Any) -> None:
        whole(self)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(change, "commit", commit)
    workspaces.create(Workspace("second", None))
    # With fewer examples, the two cases take turns.
    first, every = (1, 1) if STEP == 1 else (1 if is_known else 1 + STEP, 2 * STEP)
    for commits in range(first, COMMITS + 1, every):
        experiment = store.api.new_experiment(f"moving {commits}")
        run = store.api.new_run(experiment)

        def log(step: int, run: str = run) -> None:
            store.api.post(
                "runs/log-metric", run_id=run, key="m", value=step, step=step, timestamp=step
            )

        def trace(number: int, experiment: str = experiment) -> None:
            trace_id = f"tr-{int(experiment):028x}{number:04x}"
            tell(
                "POST", "3.0/traces", start(experiment, trace_id, state="OK", assessments=[JUDGED])
            )
            assert export(experiment, [span(trace_id.removeprefix("tr-"), 1)]).status == 200

        log(1)
        trace(1)
        if is_known:
            tables.follow()
        log(2)
        trace(2)
        workspace_moves.experiment(experiment, "second")
        lander.handler({"Records": tables.stream.fresh()}, None)
        left[0] = commits
        try:
            publisher.publish()
        except Killed:
            misplaced += any(
                row["experiment_id"] == experiment and row["workspace_id"] == "second"
                for row in tables.rows("run_metrics_history")
            )
        left[0] = 0
        workspace_moves.experiment(experiment, "default")
        lander.handler({"Records": tables.stream.fresh()}, None)
        if commits == 1:
            assert any(
                "another workspace" in difference.name for difference in verification.verify()
            )
        publisher.publish()
        for table in TABLES:
            workspace_ids = {
                row["workspace_id"]
                for row in tables.rows(table)
                if row["experiment_id"] == experiment
            }
            assert workspace_ids == {"default"}, (table, commits)
    assert misplaced >= (2 if STEP == 1 else 1)
    assert list(verification.verify()) == []
