"""What a search of runs tells callers who may not see logged models."""

from __future__ import annotations

import json
from typing import Any

import pytest

import runs.app
from mlcore.auth.permissions import Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import grants, users
from tests.contract.conftest import Store
from tests.contract.logins import called_as, named


def test_denied_models_are_in_no_searched_run(store: Store) -> None:
    experiment = store.api.post("experiments/create", name="e")["experiment_id"]
    made = [
        store.api.post("runs/create", experiment_id=experiment)["run"]["info"]["run_id"]
        for _ in range(2)
    ]
    store.api.post("runs/outputs", run_id=made[0], models=[{"model_id": "m-1", "step": 1}])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(AUTHENTICATION, "basic")
        search = lambda_handler(runs.app.RPCS)
    ann = users.create("ann", "", is_admin=False)
    grants.put(ann, "default", Grant("experiment", "*", "READ"))

    def found() -> dict[str, Any]:
        sent = json.dumps({"experiment_ids": [experiment]})
        path = "/api/2.0/mlflow/runs/search"
        status, text = called_as(named("ann"), search, "POST", path, sent)
        assert status == 200, text
        return {run["info"]["run_id"]: run["outputs"] for run in json.loads(text)["runs"]}

    seen = {made[0]: {"model_outputs": [{"model_id": "m-1", "step": 1}]}, made[1]: {}}
    assert found() == found() == seen
    grants.put(ann, "default", Grant("logged_model", "*", "DENY"))
    assert found() == found() == {made[0]: {}, made[1]: {}}
