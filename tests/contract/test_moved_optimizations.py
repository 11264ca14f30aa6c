"""Jobs that optimize a prompt whose run was moved to another experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evaluation.app
import runs.app
from mlcore.auth.permissions import Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.runs.core import moving
from mlcore.repos.users import grants, users
from tests.contract.api import called
from tests.contract.conftest import Store
from tests.contract.logins import called_as, named
from tests.contract.optimization_world import JOBS, OptimizationWorld


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OptimizationWorld:
    return OptimizationWorld(store.api, monkeypatch, tmp_path)


def test_rights_on_a_job_do_not_reach_a_moved_run(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.optimized(world.body("METAPROMPT"))
    assert job["final_eval_scores"]
    monkeypatch.setattr(moving, "QUIET_SECONDS", -1)
    moved = {"run_ids": [job["run_id"]], "experiment_id": world.api.new_experiment("hidden")}
    path = "/api/3.0/mlflow-serverless/runs/move"
    assert called(runs.app.handler, "POST", path, moved).status == 200

    member = users.create("member", "", is_admin=False)
    grants.put(member, "default", Grant("experiment", world.experiment, "MANAGE"))
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    handler = lambda_handler(evaluation.app.RPCS)

    def ask(method: str) -> tuple[int, Any]:
        path = f"{JOBS}/{job['job_id']}"
        status, text = called_as(named("member"), handler, method, path, "")
        return status, json.loads(text) if text.startswith("{") else text

    status, body = ask("GET")
    assert status == 200
    assert not {"final_eval_scores", "initial_eval_scores"} & body["job"].keys()
    assert ask("DELETE") == (200, {})
    assert ask("GET")[0] == 403
    assert world.run(job["run_id"])["info"]["lifecycle_stage"] == "active"
