"""Who did what: administrators see all rows, an administrator of a workspace its rows, and who may
manage an experiment its rows in part. Nobody else sees, counts or guesses any."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

import sql.app
from authorizer.key_authentication import authenticate
from mlcore.auth.permissions import Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.settings import system_tables_readers as readers
from mlcore.repos.users import api_keys, grants
from mlcore.repos.users import users as user_items
from mlcore.system_tables import audit_landing
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.lake import Tables, tables
from tests.contract.logins import ADMIN, called_as, named

__all__ = ["tables"]

ACTIVITY = "/api/3.0/mlflow-serverless/activity"
NOON = 1_767_268_800_000
"""2026-01-01 12:00 UTC, in milliseconds."""
SECRET = "hidden-9f31"
"""In everything that a manager of the experiment may not see."""


class Asking:
    """Calls the route as somebody."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(AUTHENTICATION, "basic")
        monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
        self._handler = lambda_handler(sql.app.RPCS)

    def raw(self, caller: dict[str, Any], text: str) -> tuple[int, str]:
        return called_as(caller, self._handler, "POST", ACTIVITY, text)

    def __call__(self, caller: dict[str, Any], **fields: Any) -> tuple[int, Any]:
        status, text = self.raw(caller, json.dumps(fields))
        return status, json.loads(text) if text.startswith("{") else text

    def rows(self, caller: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
        status, answer = self(caller, **fields)
        assert status == 200, answer
        listed: list[dict[str, Any]] = answer["rows"]
        return listed

    def pages(self, caller: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
        """The rows of all pages."""
        results: list[dict[str, Any]] = []
        token: dict[str, Any] = {}
        while True:
            status, answer = self(caller, **fields, **token)
            assert status == 200, answer
            results += answer["rows"]
            assert len(answer["rows"]) <= fields.get("max_results", 50)
            if "next_page_token" not in answer:
                return results
            token = {"page_token": answer["next_page_token"]}


def line(number: int, entity: dict[str, Any], **more: Any) -> str:
    rpc = more.pop("rpc", "/api/2.0/mlflow/runs/update")
    status = more.pop("status", 200)
    entry = {
        "user": "ann",
        "login": f"password {SECRET}",
        "address": f"203.0.113.9 {SECRET}",
        "workspace": "default",
        "outcome": "done",
        "entity": entity,
        **more,
    }
    request = {"rpc": rpc, "method": "POST", "status": status, "request_id": "", "audit": entry}
    return audit_landing.line_of(f"id{number}", NOON + 1000 * number, request)


@pytest.fixture
def asking(store: Store, monkeypatch: pytest.MonkeyPatch) -> Asking:
    for name in ("ann", "ben", "eve"):
        user_items.ensure(name)
    user_items.create("admin", "", is_admin=True)
    grants.put(user_items.get("ben"), "default", Grant("experiment", "7", "MANAGE"))
    return Asking(monkeypatch)


@pytest.fixture
def world(asking: Asking, tables: Tables) -> Tables:
    """Rows about the experiment 7, which ben manages, and about others."""
    refused = {"outcome": "refused", "status": 403}
    lines = [
        line(1, {"experiment_id": "7"}, rpc="/api/2.0/mlflow/experiments/update"),
        line(2, {"run_id": "r2", "experiment_id": "7", "model_id": "m2"}),
        line(3, {"run_id": "r3", "experiment_id": "7"}, user="eve", **refused),
        line(4, {"experiment_id": "8", "run_id": SECRET}),
        line(5, {"run_id": SECRET, "experiment_ids": ["7", "8"]}),
        line(6, {"experiment_id": "77", "run_id": SECRET}),
        line(7, {"experiment_ids": ["77", SECRET]}),
        line(
            8,
            {"experiment_id": "7", "username": "ann", "permission": "EDIT", "role_id": SECRET},
            rpc="/api/3.0/mlflow/users/permissions/grant",
            user="ben",
        ),
        line(9, {"experiment_id": "7", "run_id": SECRET}, workspace="team-b"),
        line(10, {"name": SECRET}, rpc="/api/2.0/mlflow/registered-models/create"),
        line(
            11, {"name": "old", "new_name": "new"}, rpc="/api/2.0/mlflow/registered-models/rename"
        ),
        line(12, {"username": ["ann", "eve"]}, rpc="/api/2.0/mlflow/users/create"),
        line(13, {"username": "eve"}, user=None, rpc="/login"),
        line(14, {"name": "new"}, rpc="/api/3.0/mlflow/scorers/register"),
    ]
    audit_landing.put("all", lines)
    assert tables.follow().audited == len(lines)
    return tables


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [(row["event_time"] - NOON) // 1000 for row in rows]


def test_administrators_see_all_rows_newest_first(world: Tables, asking: Asking) -> None:
    rows = asking.rows(ADMIN)
    assert numbers(rows) == list(range(14, 0, -1))
    assert rows[-2] == {
        "event_time": NOON + 2000,
        "sequence": 2,
        "user_name": "ann",
        "user_id": rows[-1]["user_id"],
        "login": f"password {SECRET}",
        "key_id": None,
        "is_admin": False,
        "address": f"203.0.113.9 {SECRET}",
        "workspace_id": "default",
        "rpc": "/api/2.0/mlflow/runs/update",
        "method": "POST",
        "http_status": 200,
        "outcome": "done",
        "entity": {"run_id": "r2", "experiment_id": "7", "model_id": "m2"},
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"experiment_id": "7"}, [9, 8, 5, 3, 2, 1]),
        ({"experiment_id": "77"}, [7, 6]),
        ({"experimentId": "8"}, [5, 4]),
        ({"experiment_id": "%"}, []),
        ({"model": "new"}, [11]),
        ({"model": "old"}, [11]),
        ({"about_user": "ann"}, [12, 8]),
        ({"about_user": "eve"}, [13, 12]),
        ({"user": "eve"}, [3]),
        ({"user": "ben", "about_user": "ann"}, [8]),
        ({"user": "' OR true --"}, []),
        ({"rpc": "registered-models/"}, [11, 10]),
        ({"rpc": "%"}, []),
        ({"outcome": "refused"}, [3]),
        ({"outcome": "failed"}, []),
        ({"since": NOON + 13_000}, [14, 13]),
        ({"since": str(NOON + 13_000), "until": NOON + 14_000}, [13]),
        ({"until": 0}, []),
        ({"user": "ann", "since": NOON + 5_000, "until": NOON + 8_000, "rpc": "runs"}, [7, 6, 5]),
    ],
)
def test_what_is_asked_for_is_listed(
    world: Tables, asking: Asking, fields: dict[str, Any], expected: list[int]
) -> None:
    assert numbers(asking.rows(ADMIN, **fields)) == expected


def test_pages_have_each_row_once_while_rows_are_added(asking: Asking, tables: Tables) -> None:
    """Rows at the same time included."""
    rng = random.Random(5)
    listed = [rng.randrange(6) for _ in range(40)]
    lines = [
        line(at, {"run_id": f"r{number}"}).replace(f'"id{at}"', f'"id-{number}"')
        for number, at in enumerate(listed)
    ]
    audit_landing.put("all", lines)
    assert tables.follow().audited == 40
    rows = asking.pages(ADMIN, max_results=7)
    assert len(rows) == len({row["sequence"] for row in rows}) == 40
    ordered = [(row["event_time"], row["sequence"]) for row in rows]
    assert ordered == sorted(ordered, reverse=True)
    first = asking(ADMIN, max_results=20)[1]
    audit_landing.put("later", [line(100, {"run_id": "later"})])
    assert tables.follow().audited == 1
    rest = asking.rows(ADMIN, max_results=20, page_token=first["next_page_token"])
    assert [row["sequence"] for row in rest] == [row["sequence"] for row in rows[20:]]
    # A token belongs to its request, of any caller.
    for fields in ({"user": "ann"}, {"outcome": "done"}):
        status, answer = asking(ADMIN, page_token=first["next_page_token"], **fields)
        assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_who_manages_an_experiment_sees_its_rows_in_part(world: Tables, asking: Asking) -> None:
    rows = asking.rows(named("ben"), experiment_id="7")
    assert numbers(rows) == [8, 5, 3, 2, 1]
    assert SECRET not in json.dumps(rows)
    assert [row["entity"] for row in rows] == [
        {"experiment_id": "7", "username": "ann", "permission": "EDIT"},
        {"experiment_id": "7"},
        {"experiment_id": "7", "run_id": "r3"},
        {"experiment_id": "7", "run_id": "r2", "model_id": "m2"},
        {"experiment_id": "7"},
    ]
    assert set(rows[0]) == {
        *("event_time", "sequence", "user_name", "user_id", "rpc", "method", "http_status"),
        *("outcome", "entity"),
    }
    assert numbers(asking.rows(named("ben"), experiment_id="7", user="eve")) == [3]
    assert numbers(asking.rows(named("ben"), experiment_id="7", about_user="ann")) == [8]
    assert len(asking.pages(named("ben"), experiment_id="7", max_results=2)) == 5


STRANGE: tuple[str, ...] = (
    "{}",
    '{"experiment_id": "7"}',
    '{"experimentId": "7"}',
    '{"experiment_id": "8"}',
    '{"experiment_id": "no such"}',
    '{"experiment_id": null}',
    '{"experiment_id": ""}',
    '{"experiment_id": "7", "experimentId": "9"}',
    '{"experimentId": "9", "experiment_id": "7"}',
    '{"experiment_id": "9", "experiment_id": "7"}',
    '{"experiment_id": ["7"]}',
    '{"experiment_id": 7}',
    '{"experiment_id": "7 "}',
    '{"experiment_id": "07"}',
    '{"experiment_id": "%"}',
    '{"experiment_id": "*"}',
    '{"experiment_id": "7\\u0000"}',
    '{"experiment_id": "\' OR 1=1 --"}',
    '{"user": "eve"}',
    '{"user": "ann", "outcome": "nonsense"}',
    '{"about_user": "eve"}',
    '{"model": "new"}',
    '{"since": 0, "until": 1}',
    '{"since": 1e999}',
    '{"since": -1, "max_results": 100000000000000000000}',
    '{"page_token": "WyJ4IiwgWzAsIDBdXQ=="}',
    '{"page_token": "\\u00e9"}',
    '{"fresh": true}',
    '{"fresh": "true"}',
    "[]",
    "null",
    '"7"',
    "{",
    "",
)


@pytest.mark.parametrize("caller", ["eve", "ann", "gone"])
def test_nobody_else_sees_counts_or_guesses(
    world: Tables, asking: Asking, caller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is sent, the answer is the same with and without rows, and never says what exists.
    The reader of all system tables is nobody here, and no statement is run for any of them."""
    readers.grant("eve", ["*"])
    grants.put(user_items.get("ann"), "default", Grant("experiment", "7", "EDIT"))
    grants.put(user_items.get("ann"), "default", Grant("experiment", "9", "READ"))

    def fail(_request: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("a statement was run")

    monkeypatch.setattr("sql.execution.run_query", fail)
    for text in STRANGE:
        status, answer = asking.raw(named(caller), text)
        assert status in {400, 401, 403, 404}, (text, status, answer)
        assert SECRET not in answer
        assert "rows" not in answer
        if text.startswith('{"experiment_id": "') and '": "9"' not in text:
            assert (status, answer) == asking.raw(named(caller), '{"experiment_id": "no such"}')


def test_a_manager_is_confined_to_the_experiment(world: Tables, asking: Asking) -> None:
    ben = named("ben")
    for text in STRANGE:
        status, answer = asking.raw(ben, text)
        assert status in {200, 400, 403}, (text, answer)
        assert SECRET not in answer
        if status == 200:
            entities = [row["entity"] for row in json.loads(answer)["rows"]]
            assert all(entity["experiment_id"] == "7" for entity in entities), text
            assert "7" in text
    token = asking(ADMIN, max_results=1)[1]["next_page_token"]
    assert asking(ben, experiment_id="7", page_token=token)[0] == 400
    # Forged positions select among the rows that ben may see.
    own = asking(ben, experiment_id="7", max_results=1)[1]["next_page_token"]
    assert asking(ben, experiment_id="8", page_token=own)[0] == 403
    grants.delete(user_items.get("ben"), "default", "experiment", "7")
    assert asking(ben, experiment_id="7")[0] == 403


def test_workspaces_and_keys_limit_rows(
    world: Tables, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    chief = named("ann")
    grants.put(user_items.get("ann"), "default", Grant("workspace", "*", "MANAGE"))
    assert 9 not in numbers(asking.rows(chief))
    assert len(asking.rows(chief)) == 13
    assert "address" in asking.rows(chief)[0]

    def by_key(username: str, *scopes: str) -> dict[str, Any]:
        made = api_keys.create(user_items.get(username), "k", "default", scopes, None)
        return {"lambda": authenticate("", made.token)}

    for username, scope in itertools.product(
        ("admin", "ann", "ben"), ("read", "experiment:7", "model:x", "gateway:y")
    ):
        caller = by_key(username, scope)
        for fields in ({}, {"experiment_id": "7"}, {"experiment_id": "8"}):
            assert asking(caller, **fields)[0] in {401, 403}, (username, scope, fields)


def test_experiments_of_another_workspace(
    world: Tables, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grant in the wrong workspace shows nothing, and rows of another workspace stay there."""
    enable_workspaces(monkeypatch, "team-a", "team-b")
    grants.put(user_items.get("eve"), "team-a", Grant("experiment", "7", "MANAGE"))
    caller = named("eve")
    for workspace in ("team-a", "team-b", "default"):
        event = {
            "version": "2.0",
            "rawPath": ACTIVITY,
            "rawQueryString": "",
            "headers": {"content-type": "application/json", "x-mlflow-workspace": workspace},
            "requestContext": {
                "http": {"method": "POST"},
                "requestId": "test",
                "authorizer": caller,
            },
            "isBase64Encoded": False,
            "body": '{"experiment_id": "7"}',
        }
        answer = lambda_handler(sql.app.RPCS)(event, None)
        assert answer["statusCode"] == 403, workspace
