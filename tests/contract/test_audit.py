"""Every write and every refusal says who, from where, what and with which outcome, and no line of
the log ever holds a secret or a content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlcore import observability
from mlcore.entities.scim import scim_id_of
from mlcore.environment import AUTHENTICATION
from mlcore.http import audit, lambda_handler
from mlcore.repos.users import users
from tests.contract import route_environment
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.logins import Logins, named
from tests.contract.route_requests import NOT_SENT, REQUESTS
from tests.contract.route_world import DOMAINS, World, routes_of
from tests.contract.scim_world import CORE_GROUP, CORE_USER, Directory
from tests.contract.sign_in_browser import Browser
from tests.issuer import Issuer

MARK = "cONtent-1f6e"
"""In everything that is sent and identifies nothing."""
ROOT_CALLER = {
    "lambda": {
        "method": "basic",
        "login": "password",
        "address": "203.0.113.9",
        "username": "admin",
        "is_admin": True,
    }
}
IDENTIFYING = {
    *("name", "new_name", "version", "alias", "username", "permission", "resource_type"),
    *("resource_pattern", "role", "workspace", "run_uuid", "is_admin", "scopes"),
    *("endpoint_name", "workspace_name", "skill_name", "organization", "userName"),
}
READS = {
    "GET",
    "POST /2.0/mlflow/experiments/search",
    "POST /2.0/mlflow/experiments/search-datasets",
    "POST /2.0/mlflow/runs/search",
    "POST /2.0/mlflow/logged-models/search",
    "POST /2.0/mlflow/registered-models/get-latest-versions",
    "POST /2.0/mlflow/artifacts/presigned-download-url",
    "POST /3.0/mlflow/traces/batchGetInfos",
    "POST /3.0/mlflow/traces/search",
    "POST /3.0/mlflow/traces/metrics",
    "POST /3.0/mlflow/traces/calculate-filter-correlation",
    "POST /3.0/mlflow/datasets/search",
    "POST /3.0/mlflow/issues/search",
    "POST /3.0/mlflow/prompt-optimization/jobs/search",
    "POST /graphql",
    "POST /3.0/jobs/search",
    "POST /3.0/mlflow/ui-telemetry",
}
NAMELESS = {
    "POST /2.0/mlflow/gateway-proxy",  # calls another server
    "POST /3.0/mlflow/skills/bulk-register",  # of many
}
"""Writes that name no entity by an identifier."""


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    logged: list[dict[str, Any]] = []
    monkeypatch.setattr(
        observability._requests, "info", lambda _message, extra: logged.append(dict(extra))
    )
    return logged


@pytest.fixture
def world(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    route_environment.prepare(monkeypatch, tmp_path)
    users.create("admin", "", is_admin=True)
    made = World()
    made.caller = ROOT_CALLER
    made.headers = {
        "authorization": f"Bearer {MARK}",
        "cookie": f"__Host-mlflow-session={MARK}",
        "user-agent": MARK,
        "x-forwarded-for": MARK,
    }
    return made


def marked(value: Any, field: str = "") -> Any:
    """The value of a request with the mark in all that is content."""
    if isinstance(value, dict):
        return {name: marked(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [marked(inner, field) for inner in value]
    if isinstance(value, str) and not field.endswith(("_id", "_ids")) and field not in IDENTIFYING:
        return f"{value}{MARK}"
    return value


@pytest.mark.parametrize("domain", DOMAINS)
def test_writes_say_who_and_what_and_nothing_else(
    world: World, lines: list[dict[str, Any]], domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if domain == "workspaces":
        enable_workspaces(monkeypatch, "other")
    last_method, vague = "", []
    for route in routes_of(domain):
        if route in NOT_SENT:
            continue
        method, path = route.split()
        if {method, last_method} != {"GET"}:
            world.prepare(domain)
        last_method = method
        is_read = method == "GET" or route in READS
        for sent in (REQUESTS[route], marked(REQUESTS[route]), {MARK: MARK, "key": MARK}):
            lines.clear()
            status, _ = world.send(method, path, sent)
            [line] = lines
            assert MARK not in json.dumps(line, default=str), (route, line)
            if is_read and status not in (401, 403):
                assert "audit" not in line, route
                continue
            entry = line["audit"]
            assert entry["user"] == "admin"
            assert entry["login"] == "password"
            assert entry["address"] == "203.0.113.9"
            assert entry["workspace"] == "default"
            assert entry["is_admin"] is True
            assert entry["outcome"] == ("done" if status < 400 else "failed")
            assert line["rpc"] == path
            if status < 400 and not entry["entity"] and route not in NAMELESS:
                vague.append(route)
    assert vague == []


def test_refusals(world: World, lines: list[dict[str, Any]]) -> None:
    """Of an unknown caller, of one without the right, and of one whose request is malformed."""
    logins = Logins()
    users.create("eve", "", is_admin=False)
    eve = named("eve")
    eve["lambda"] |= {"login": "key", "address": "198.51.100.4"}
    update = "2.0/mlflow/experiments/set-experiment-tag"
    nobody = {"lambda": {"method": "basic", "login": "password", "address": "198.51.100.4"}}
    for caller, user in ((eve, "eve"), (nobody, None)):
        for fields in ({"experiment_id": "0", "key": MARK, "value": MARK}, {"experiment_id": "0"}):
            lines.clear()
            status = logins.ask(caller, "POST", update, **fields).status
            assert status == (403 if user else 401)
            [line] = lines
            assert line["rpc"] == f"/{update}"
            entry = line["audit"]
            assert (entry["user"], entry["outcome"]) == (user, "refused")
            assert entry["address"] == "198.51.100.4"
            assert MARK not in json.dumps(line, default=str)
    assert entry["login"] == "password"


def test_a_directory_s_users_and_groups(store: Store, lines: list[dict[str, Any]]) -> None:
    """By number and name, not by the SCIM id, in which an erasure does not see the name."""
    users.create("admin", "", is_admin=True)
    directory = Directory()

    def entity(method: str, path: str, body: Any = None) -> dict[str, Any]:
        lines.clear()
        directory.ask(method, path, body)
        [line] = lines
        named: dict[str, Any] = line["audit"]["entity"]
        return named

    created = entity("POST", "Users", {"schemas": [CORE_USER], "userName": "Ada"})
    number = users.get("Ada").user_id
    assert created == {"scim_id": number, "username": "Ada"}
    for method, path in (("PUT", "Users/"), ("PATCH", "Users/"), ("DELETE", "Users/")):
        assert entity(method, path + scim_id_of(number, "Ada"), {}) == created
    group = entity("POST", "Groups", {"schemas": [CORE_GROUP], "displayName": "Scientists"})
    assert list(group) == ["group_id"]
    assert entity("DELETE", f"Groups/{group['group_id']}").items() >= group.items()


def test_grants_say_what_was_given_to_whom(world: World, lines: list[dict[str, Any]]) -> None:
    world.prepare("users")
    lines.clear()
    route = "POST /3.0/mlflow/users/permissions/grant"
    method, path = route.split()
    status, _ = world.send(method, path, REQUESTS[route])
    assert status == 200
    assert lines[0]["audit"]["entity"] == {
        "username": world.names["user"],
        "permission": "READ",
        "resource_type": "experiment",
        "resource_id": world.names["experiment"],
        "experiment_id": world.names["experiment"],
    }


def test_created_entities_are_named(world: World, lines: list[dict[str, Any]]) -> None:
    world.prepare("runs")
    run = next(line for line in reversed(lines) if line["rpc"] == "/2.0/mlflow/runs/create")
    assert run["audit"]["entity"]["experiment_id"] == world.names["experiment"]
    assert len(run["audit"]["entity"]["run_id"]) == 26
    experiment = next(line for line in lines if line["rpc"] == "/2.0/mlflow/experiments/create")
    assert experiment["audit"]["entity"] == {"experiment_id": world.names["experiment"]}


def test_key_of_the_caller(store: Store, lines: list[dict[str, Any]]) -> None:
    users.create("ada", "", is_admin=False)
    caller = {"lambda": {"method": "oidc", "login": "key", "key_user": "ada", "key_id": "1-ab"}}
    Logins("oidc").ask(caller, "POST", "2.0/mlflow/experiments/create", name="e")
    entry = lines[-1]["audit"]
    assert (entry["user"], entry["key_id"], entry["login"]) == ("ada", "1-ab", "key")


def test_token_in_place_of_an_id(store: Store, lines: list[dict[str, Any]]) -> None:
    users.create("admin", "", is_admin=True)
    token = f"mlk_7-{'0' * 20}_{'s' * 43}"
    for wrong in (token, f"x{token}", f"Bearer eyJhbGciOiJSUzI1NiJ9.{'s' * 43}", "sk-" + "s" * 43):
        Logins().ask(ROOT_CALLER, "DELETE", "3.0/mlflow-serverless/keys", key_id=wrong)
        assert "ssss" not in json.dumps(lines[-1], default=str)
    Logins().ask(ROOT_CALLER, "DELETE", "3.0/mlflow-serverless/keys", key_id="k" * 5_000)
    assert lines[-1]["audit"]["entity"] == {"key_id": "k" * audit.MAX_LENGTH}


def test_reads_by_a_setting(
    store: Store, lines: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    users.create("admin", "", is_admin=True)
    monkeypatch.setenv(audit.AUDIT_READS, "true")
    path = "2.0/mlflow/experiments/get"
    Logins().ask(ROOT_CALLER, "GET", path, experiment_id="0")
    assert lines[-1]["audit"]["entity"] == {"experiment_id": "0"}


def test_without_a_login_nobody_is_named(
    store: Store, lines: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AUTHENTICATION, "none")
    World().prepare("runs")
    assert lines
    assert not [line for line in lines if "audit" in line and line["audit"]["user"] is None]


def test_sign_in_and_logout(issuer: Issuer, lines: list[dict[str, Any]]) -> None:
    browser = Browser()
    browser.sign_in(issuer)
    entry = lines[-1]["audit"]
    assert (entry["user"], entry["outcome"]) == ("ada@example.org", "done")
    browser.open("/logout", **{"sec-fetch-site": "same-origin"})
    assert lines[-1]["audit"]["user"] == "ada@example.org"
    other = Browser()
    assert other.sign_in(issuer, email="ada@example.org", sub="another").status == 403
    assert lines[-1]["audit"]["outcome"] == "refused"


def test_pages_that_other_sites_send(store: Store, lines: list[dict[str, Any]]) -> None:
    """Refused before anybody is identified."""
    from experiments.app import RPCS  # noqa: PLC0415

    event = {
        "rawPath": "/api/2.0/mlflow/experiments/create",
        "headers": {"origin": f"https://{MARK}.example", "host": "mlflow.example"},
        "requestContext": {"http": {"method": "POST", "sourceIp": "192.0.2.7"}},
    }
    assert lambda_handler(RPCS)(event, None)["statusCode"] == 403
    entry = lines[-1]["audit"]
    assert (entry["user"], entry["address"], entry["outcome"]) == (None, "192.0.2.7", "refused")
    assert MARK not in json.dumps(lines[-1], default=str)
