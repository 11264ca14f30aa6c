"""``created_by`` of the system tables is who was logged in, whatever the client calls its user."""

from __future__ import annotations

import json
from typing import Any

import pytest

import experiments.app
import kubeflow.app
import runs.app
from mlcore.environment import AUTHENTICATION
from mlcore.repos.users import users
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.logins import named, signed
from tests.contract.prompt_runs import TRIED

__all__ = ["tables"]

ROLE = "arn:aws:sts::123456789012:assumed-role/Trainer/i-0123"
BEARER = {"lambda": {"username": "ann@example.org", "is_admin": False, "method": "oidc"}}


@pytest.fixture(params=["basic", "oidc", "iam"])
def login(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """Who is logged in, and what the authorizer says of that."""
    monkeypatch.setenv(AUTHENTICATION, request.param)
    names = {"basic": "ann", "oidc": "ann@example.org", "iam": ROLE}
    contexts = {"basic": named("ann"), "oidc": BEARER, "iam": signed(ROLE)}
    return names[request.param], contexts[request.param]


def test_created_by_is_who_was_logged_in(
    store: Store, tables: Tables, login: tuple[str, Any]
) -> None:
    username, authorizer = login
    users.ensure(username)

    def post(app: Any, path: str, **fields: Any) -> Any:
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": "",
            "headers": {"content-type": "application/json", "host": "localhost"},
            "requestContext": {
                "http": {"method": "POST"},
                "requestId": "test",
                "authorizer": authorizer,
            },
            "isBase64Encoded": False,
            "body": json.dumps(fields),
        }
        answer = app.handler(event, None)
        assert answer["statusCode"] in (200, 201), answer
        return json.loads(answer["body"])

    mlflow = "/api/2.0/mlflow"
    experiment = post(experiments.app, f"{mlflow}/experiments/create", name="e")["experiment_id"]
    info = post(
        runs.app, f"{mlflow}/runs/create", experiment_id=experiment, user_id="root", start_time=1
    )["run"]["info"]
    # What MLflow's clients read is what they sent.
    assert info["user_id"] == "root"
    tried = post(
        runs.app,
        "/ajax-api/2.0/mlflow/runs/create-promptlab-run",
        experiment_id=experiment,
        **{**TRIED, "user_id": "root"},
    )
    prefix = "/api/model_registry/v1alpha3"
    parent = post(kubeflow.app, f"{prefix}/experiments", name="k")["id"]
    post(
        kubeflow.app,
        f"{prefix}/experiment_runs",
        name="r",
        experimentId=parent,
        owner="root",
    )
    made = {info["run_id"], tried["run"]["info"]["run_id"]}
    tables.follow()
    rows = tables.rows("runs_latest")
    assert made < {row["run_id"] for row in rows}
    assert [row["created_by"] for row in rows] == [username] * 3


def test_created_by_is_what_the_client_says_where_nobody_logs_in(
    store: Store, tables: Tables
) -> None:
    experiment = store.api.post("experiments/create", name="e")["experiment_id"]
    store.api.post("runs/create", experiment_id=experiment, user_id="root", start_time=1)
    store.api.post("runs/create", experiment_id=experiment, start_time=1)
    tables.follow()
    assert {row["created_by"] for row in tables.rows("runs_latest")} == {"root", None}
