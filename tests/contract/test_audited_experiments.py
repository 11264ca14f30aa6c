"""Requests name their experiment in the audit, also those that name only a run or a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import experiments.app
import runs.app
import traces.app
import users.app
from mlcore import process_cache
from mlcore.environment import AUTHENTICATION
from mlcore.http import audit, lambda_handler
from mlcore.repos.users import users as user_items
from tests.contract.conftest import Store
from tests.contract.logins import ADMIN, called_as, named


class Entities(list[dict[str, Any]]):
    """The entities of audited requests."""

    def check(self) -> None:
        """There is always room."""

    def record(self, request: Mapping[str, Any], /) -> None:
        self.append(dict(request["audit"]["entity"]))


@pytest.fixture
def kept() -> Iterator[Entities]:
    entities = Entities()
    audit.provide(entities)
    yield entities
    audit.provide(None)


def test_requests_name_their_experiment(
    store: Store, kept: Entities, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of runs and traces, by administrators whose rights nobody looks up, and by callers who
    are refused."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    user_items.create("admin", "", is_admin=True)
    user_items.ensure("eve")
    handlers = {
        "experiments": lambda_handler(experiments.app.RPCS),
        "runs": lambda_handler(runs.app.RPCS),
        "traces": lambda_handler(traces.app.RPCS),
        "users": lambda_handler(users.app.RPCS),
    }

    def send(path: str, caller: dict[str, Any] = ADMIN, method: str = "POST", **fields: Any) -> Any:
        handler = handlers[path.split("/")[2]]
        status, text = called_as(caller, handler, method, f"/api/{path}", json.dumps(fields))
        return status, json.loads(text) if text.startswith("{") else text

    ids = [send("2.0/mlflow/experiments/create", name=name)[1]["experiment_id"] for name in "ab"]
    assert [entry["experiment_id"] for entry in kept] == ids
    made = []
    for experiment_id in ids:
        _, answer = send("2.0/mlflow/runs/create", experiment_id=experiment_id, start_time=1)
        made.append(answer["run"]["info"]["run_id"])
        assert kept[-1]["experiment_id"] == experiment_id
    process_cache.clear()
    tag: dict[str, Any] = {"key": "k", "value": "v"}
    assert send("2.0/mlflow/runs/set-tag", run_id=made[0], **tag)[0] == 200
    assert kept[-1]["experiment_id"] == ids[0]
    process_cache.clear()
    status, _ = send("2.0/mlflow/runs/set-tag", named("eve"), run_id=made[1], **tag)
    assert (status, kept[-1].get("experiment_id")) == (403, ids[1])
    status, answer = send("3.0/mlflow-serverless/runs/tags", run_ids=made, tags=[tag])
    assert status == 200, answer
    assert kept[-1]["experiment_ids"] == ids
    assert "experiment_id" not in kept[-1]
    trace = {
        "trace_id": "tr-1",
        "trace_location": {
            "type": "MLFLOW_EXPERIMENT",
            "mlflow_experiment": {"experiment_id": ids[0]},
        },
        "request_time": "2026-01-01T00:00:00Z",
        "state": "OK",
    }
    assert send("3.0/mlflow/traces", trace={"trace_info": trace})[0] == 200
    path = "3.0/mlflow/traces/tr-1/tags"
    assert send(path, method="PATCH", **tag)[0] == 200
    assert (kept[-1]["trace_id"], kept[-1]["experiment_id"]) == ("tr-1", ids[0])
    given: dict[str, Any] = {
        "username": "eve",
        "resource_type": "experiment",
        "resource_id": ids[1],
    }
    status, answer = send("3.0/mlflow/users/permissions/grant", permission="READ", **given)
    assert status == 200, answer
    assert kept[-1]["experiment_id"] == ids[1]
    assert kept[-1]["username"] == "eve"
    assert send("2.0/mlflow/runs/set-tag", run_id="missing", **tag)[0] == 404
    assert "experiment_id" not in kept[-1]
