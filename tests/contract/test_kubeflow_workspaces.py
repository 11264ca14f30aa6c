"""A workspace before the path is the workspace of the header: the same answers, the same rights."""

from __future__ import annotations

import itertools
import json
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import pytest

import registry.app
from kubeflow import app as kubeflow_app
from kubeflow.calls import ERROR_FORMAT
from mlcore.auth.permissions import REGISTERED_MODEL, Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import grants, users
from tests.contract.api import Answer
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.kubeflow_api import KubeflowApi
from tests.contract.logins import ADMIN, named

BASE = "/api/model_registry/v1"
IN_WORKSPACE = "/workspaces/{}" + BASE


class Callers:
    """Kubeflow's API where callers log in, with a workspace in the header, in the path, or both."""

    def __init__(self) -> None:
        self._handler = lambda_handler(
            (),
            kubeflow_app.PLAIN_ROUTES,
            ERROR_FORMAT,
            in_workspaces="/api/model_registry/",
        )

    def ask(
        self,
        caller: dict[str, Any],
        method: str,
        path: str,
        body: Any = None,
        *,
        header: str = "",
    ) -> Answer:
        bare_path, _, query = path.partition("?")
        event = KubeflowApi(workspace=header).event(method, bare_path, body, dict(parse_qsl(query)))
        event["requestContext"]["authorizer"] = caller
        answer = self._handler(event, None)
        text = answer["body"]
        parsed = json.loads(text) if text.startswith("{") else {"text": text}
        return Answer(answer["statusCode"], parsed, 0)


@pytest.fixture
def callers(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callers:
    enable_workspaces(monkeypatch, "team-a", "team-b")
    monkeypatch.setenv(AUTHENTICATION, "basic")
    for username in PEOPLE:
        users.create(username, "", is_admin=username == "admin")
    return Callers()


PEOPLE = {
    "admin": ADMIN,
    "reader": named("reader"),
    "editor": named("editor"),
    "barred": named("barred"),
    "stranger": named("stranger"),
}
GRANTS = (("reader", "READ"), ("editor", "EDIT"), ("barred", "NO_PERMISSIONS"))


def populate(callers: Callers) -> dict[str, dict[str, str]]:
    """A model with a version in each of two workspaces; grants are on that of team-a alone."""
    results = {}
    for workspace in ("team-a", "team-b"):
        make = partial(_made, callers, workspace)
        model = make("registered_models", name="secret", externalId=f"x-{workspace}")
        version = make("model_versions", name="v", registeredModelId=model)
        environment = make("serving_environments", name="e")
        results[workspace] = {"model": model, "version": version, "environment": environment}
    for username, permission in GRANTS:
        grants.put(users.get(username), "team-a", Grant(REGISTERED_MODEL, "secret", permission))
    return results


def _made(callers: Callers, workspace: str, path: str, **fields: str) -> str:
    made = callers.ask(ADMIN, "POST", f"{BASE}/{path}", fields, header=workspace)
    assert made.status == 201, made
    return str(made.body["id"])


def requests(ids: dict[str, str], mark: str) -> list[tuple[str, str, Any]]:
    """Reads, counts and writes; a write that makes something names it by the mark."""
    model, version, environment = ids["model"], ids["version"], ids["environment"]
    versions = f"registered_models/{model}/versions"
    return [
        ("GET", "registered_models", None),
        ("GET", "registered_model?name=secret", None),
        ("GET", "registered_model?externalId=x-team-b", None),
        ("GET", f"registered_models/{model}", None),
        ("GET", versions, None),
        ("GET", "model_versions", None),
        ("GET", f"model_versions/{version}", None),
        ("GET", f"model_versions/{version}/artifacts", None),
        ("GET", "artifacts", None),
        ("GET", f"serving_environments/{environment}", None),
        ("GET", "serving_environments", None),
        ("GET", "inference_services", None),
        ("GET", "nothing", None),
        ("PATCH", f"registered_models/{model}", {"description": "changed"}),
        ("PATCH", f"model_versions/{version}", {"description": "changed"}),
        ("POST", versions, {"name": f"v {mark}", "registeredModelId": model}),
        ("PATCH", f"serving_environments/{environment}", {"description": "changed"}),
        ("PUT", "registered_models", {}),
    ]


def plain(answer: Answer, mark: str) -> str:
    """Without what two writes one after another differ in."""
    body = {
        name: value
        for name, value in answer.body.items()
        if name not in ("id", "createTimeSinceEpoch", "lastUpdateTimeSinceEpoch")
    }
    text = json.dumps([answer.status, body], sort_keys=True)
    return text.replace(mark, "mark") if mark else text


def test_a_prefix_decides_as_the_header_does(callers: Callers) -> None:
    """For everybody, in every workspace, about what is there and what is another workspace's."""
    ids = populate(callers)
    statuses = set()
    pairs = itertools.product(PEOPLE.items(), ("team-a", "team-b", "missing", "default"), ids)
    for (who, caller), workspace, of in pairs:
        by_path = requests(ids[of], f"path {who}")
        for (method, path, body), (_, _, other) in zip(
            requests(ids[of], f"head {who}"), by_path, strict=True
        ):
            header = callers.ask(caller, method, f"{BASE}/{path}", body, header=workspace)
            for segment in (workspace, f"{workspace}:8443"):
                if method == "POST" and segment != workspace:
                    continue
                prefixed = f"{IN_WORKSPACE.format(segment)}/{path}"
                prefix = callers.ask(caller, method, prefixed, other)
                if method == "GET":
                    assert (prefix.status, prefix.body) == (header.status, header.body), prefixed
                else:
                    answers = plain(prefix, f"path {who}"), plain(header, f"head {who}")
                    assert answers[0] == answers[1], (who, prefixed)
            statuses.add(header.status)
    assert {200, 201, 403, 404, 405} <= statuses


def test_header_and_prefix_that_differ_are_refused(callers: Callers) -> None:
    ids = populate(callers)
    path = f"{IN_WORKSPACE.format('team-a')}/registered_models/{ids['team-a']['model']}"
    for who, caller in PEOPLE.items():
        refused = callers.ask(caller, "GET", path, header="team-b")
        assert refused.status == 400, who
        assert "another workspace" in refused.body["message"]
        same = callers.ask(caller, "GET", path, header="team-a")
        assert same == callers.ask(caller, "GET", path), who
    assert callers.ask({}, "GET", path, header="team-a").status == 401
    assert callers.ask({}, "GET", path).status == 401


def test_a_prefix_is_of_kubeflows_paths_alone(store: Store, callers: Callers) -> None:
    """It leads nowhere else, and is taken once."""
    for path in (
        "/workspaces/team-a/readyz/health",
        "/workspaces/team-a/api/2.0/mlflow/experiments/search",
        f"/workspaces/team-a/workspaces/team-a{BASE}/registered_models",
        f"/workspaces//team-a{BASE}/registered_models",
        f"/workspaces/{BASE}/registered_models",
        f"/workspaces/team-a/x{BASE}/registered_models",
        f"/Workspaces/team-a{BASE}/registered_models",
    ):
        event = KubeflowApi().event("GET", path, None, {})
        event["requestContext"]["authorizer"] = ADMIN
        assert callers._handler(event, None)["statusCode"] == 404, path
    for strange in ("..", "team-a%2f", "TEAM-A", "team-a\0", " "):
        path = f"{IN_WORKSPACE.format(strange)}/registered_models"
        assert 400 <= callers.ask(ADMIN, "GET", path).status < 500, strange
    mlflow = lambda_handler(registry.app.RPCS)
    event = KubeflowApi().event(
        "GET", "/workspaces/team-a/api/2.0/mlflow/registered-models/search", None, {}
    )
    event["requestContext"]["authorizer"] = ADMIN
    assert mlflow(event, None)["statusCode"] == 404


def test_without_workspaces_a_prefix_is_refused_as_a_header_is(store: Store) -> None:
    header = KubeflowApi(workspace="team-a").ask("GET", "registered_models")
    prefix = KubeflowApi().ask("GET", f"{IN_WORKSPACE.format('team-a')}/registered_models")
    assert prefix == header
    assert prefix.status >= 400
