"""Who may read the system tables: granted and taken away through the API, by administrators."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

import sql.app
import users.app
import workspaces.app
from mlcore.http import lambda_handler
from mlcore.http.handler import Handler
from mlcore.policies import access as policy
from mlcore.policies import system_tables as rights
from mlcore.repos.settings import stored_settings, system_tables_readers
from mlcore.repos.users import users as user_items
from sql import execution
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.logins import ADMIN, named

READERS = "/api/3.0/mlflow-serverless/system-tables/readers"
SQL = "/api/3.0/mlflow-serverless/sql"


def ask(
    caller: Any,
    method: str,
    path: str,
    body: Any = None,
    handler: Handler = workspaces.app.handler,
) -> tuple[int, Any]:
    event: dict[str, Any] = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json", "host": "localhost"},
        "requestContext": {
            "http": {"method": method},
            "requestId": "test",
            "authorizer": caller,
        },
        "isBase64Encoded": False,
        **({} if body is None else {"body": json.dumps(body)}),
    }
    answer = handler(event, None)
    text = answer["body"]
    return answer["statusCode"], json.loads(text) if text.startswith("{") else text


def grant(username: str, *names: str, caller: Any = ADMIN) -> tuple[int, Any]:
    return ask(caller, "PUT", READERS, {"username": username, "workspaces": names})


def listed() -> dict[str, list[str]]:
    status, body = ask(ADMIN, "GET", READERS)
    assert status == 200
    return {reader["username"]: reader["workspaces"] for reader in body["readers"]}


@pytest.fixture
def teams(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    enable_workspaces(monkeypatch, "team-a", "team-b")
    monkeypatch.setenv("INDEX_LAG_MS", "0")
    for name in ("ann", "bob"):
        user_items.ensure(name)
    return store


def test_what_is_granted_counts_from_the_next_query_on(
    teams: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is taken away no longer; no process is started anew."""
    workspace_lists: list[Any] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        workspace_lists.append(request["workspaces"])
        return {"columns": [], "types": [], "rows": [], "truncated": False}

    monkeypatch.setattr(execution, "run_query", answer)

    def query() -> int:
        return ask(named("ann"), "POST", SQL, {"sql": "SELECT 1"}, sql.app.handler)[0]

    assert query() == 403
    wanted = {"username": "ann", "workspaces": ["team-a", "team-b"]}
    assert grant("ann", "team-b", "team-a", "team-b") == (200, {"reader": wanted})
    assert query() == 200
    assert grant("ann", "team-a", "*")[1]["reader"]["workspaces"] == ["*"]
    assert query() == 200
    assert listed() == {"ann": ["*"]}
    for _ in range(2):
        assert ask(ADMIN, "DELETE", READERS, {"username": "ann"}) == (200, {})
    assert query() == 403
    assert workspace_lists == [["team-a", "team-b"], None]
    assert listed() == {}


def test_only_administrators_grant(teams: Store) -> None:
    assert grant("ann", "*", caller=named("ann"))[0] == 403
    assert ask(named("ann"), "GET", READERS)[0] == 403
    assert ask(named("ann"), "DELETE", READERS, {"username": "bob"})[0] == 403
    assert listed() == {}


def test_unknown_workspaces_are_refused(teams: Store) -> None:
    assert grant("ann", "team-a")[0] == 200
    for unknown in (["team-c"], ["team-a", "team-c"], ["team-c", "team-b"]):
        status, body = grant("ann", *unknown)
        assert (status, body["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
        assert "'team-c' not found" in body["message"]
        setting = {"value": {"ann": unknown}}
        path = "/api/3.0/mlflow-serverless/config/system_tables_readers"
        assert ask(ADMIN, "PUT", path, setting)[0] == 404
    # Of one who cannot have changed since: what was granted before is not read from it.
    stored_settings.put("system_tables_readers", {"ann": ["team-a"], "bob": ["*"]})
    assert listed() == {"ann": ["team-a"], "bob": ["*"]}


@pytest.mark.parametrize(
    "body",
    [
        {"username": "ann"},
        {"workspaces": ["*"]},
        {"username": "", "workspaces": ["*"]},
        {"username": "a" * 256, "workspaces": ["*"]},
        {"username": 7, "workspaces": ["*"]},
        {"username": "ann", "workspaces": []},
        {"username": "ann", "workspaces": "team-a"},
        {"username": "ann", "workspaces": [7]},
        {"username": "ann", "workspaces": ["*"] * 51},
    ],
)
def test_what_is_no_grant_is_refused(teams: Store, body: Any) -> None:
    status, answer = ask(ADMIN, "PUT", READERS, body)
    assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert listed() == {}


def test_no_grant_is_lost_beside_others(teams: Store) -> None:
    """The readers are one item, and administrators write at the same time."""
    names = [f"user-{number}" for number in range(12)]
    threads = [threading.Thread(target=grant, args=(name, "team-a")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert listed() == {name: ["team-a"] for name in names}


def test_a_grant_ends_with_its_workspace_and_with_its_user(teams: Store) -> None:
    """Whoever gets the name later is somebody else."""
    grant("ann", "team-a", "team-b")
    grant("bob", "team-a")
    assert ask(ADMIN, "DELETE", "/api/3.0/mlflow/workspaces/team-a")[0] == 204
    assert listed() == {"ann": ["team-b"]}
    users_handler = lambda_handler(users.app.RPCS)
    body = {"username": "ann"}
    assert ask(ADMIN, "DELETE", "/api/2.0/mlflow/users/delete", body, users_handler)[0] == 200
    assert listed() == {}
    user_items.ensure("ann")
    assert rights.readable_workspaces(policy.Access("ann", False, "team-b")) == []


def test_a_workspace_that_goes_at_the_same_time_takes_the_grant_with_it(
    teams: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion comes between what a grant reads and what it writes."""
    read = system_tables_readers._read
    deleted: list[int] = []

    def read_and_wait() -> Any:
        stored = read()
        if not deleted:
            deleted.append(0)
            deleted[0] = ask(ADMIN, "DELETE", "/api/3.0/mlflow/workspaces/team-a")[0]
        return stored

    monkeypatch.setattr(system_tables_readers, "_read", read_and_wait)
    assert grant("ann", "team-a")[0] == 404
    assert deleted == [204]
    assert listed() == {}
