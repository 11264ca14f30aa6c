"""Saved queries of a workspace: who changes, reads and runs them, and what a repetition does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import sql.app
import workspaces.app
from mlcore import artifacts
from mlcore.auth.api_key_scopes import KeyLimits
from mlcore.db import capacity
from mlcore.http.handler import Handler
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.users import users as user_items
from sql import execution
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.logins import ADMIN, named

QUERIES = "/api/3.0/mlflow-serverless/queries"
SQL = "/api/3.0/mlflow-serverless/sql"
ANN, BOB, EVE, OLD = named("ann"), named("bob"), named("eve"), named("old")
COST = "SELECT run_id FROM system.mlflow.runs_latest WHERE start_time > :since LIMIT 5"
SINCE = {"name": "since", "type": "date", "default": "2026-01-01"}


def ask(
    caller: Any,
    method: str,
    path: str = "",
    body: Any = None,
    workspace: str = "team-a",
    handler: Handler = workspaces.app.handler,
) -> tuple[int, Any]:
    event: dict[str, Any] = {
        "version": "2.0",
        "rawPath": path if path == SQL else QUERIES + path,
        "rawQueryString": urlencode(body) if method == "GET" and body else "",
        "headers": {
            "content-type": "application/json",
            "host": "localhost",
            "x-mlflow-workspace": workspace,
        },
        "requestContext": {"http": {"method": method}, "requestId": "test", "authorizer": caller},
        "isBase64Encoded": False,
    }
    if method != "GET" and body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    answer = handler(event, None)
    text = answer["body"]
    return answer["statusCode"], json.loads(text) if text.startswith("{") else text


def save(caller: Any, name: str = "cost", workspace: str = "team-a", **fields: Any) -> Any:
    body = {"name": name, "sql": COST, "parameters": [SINCE], **fields}
    return ask(caller, "POST", "", body, workspace)


def run(caller: Any, name: Any = "cost", workspace: str = "team-a", **fields: Any) -> Any:
    return ask(caller, "POST", SQL, {"saved": name, **fields}, workspace, sql.app.handler)


@pytest.fixture
def teams(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Ann and bob read the rows of team-a, bob also those of team-b, eve those of team-b; old of
    none."""
    enable_workspaces(monkeypatch, "team-a", "team-b")
    monkeypatch.setenv("INDEX_LAG_MS", "0")
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path))
    artifacts.store.cache_clear()
    for name in ("ann", "bob", "eve", "old", "admin"):
        user_items.ensure(name)
    system_tables_readers.grant("ann", ["team-a"])
    system_tables_readers.grant("bob", ["team-a", "team-b"])
    system_tables_readers.grant("eve", ["team-b"])
    yield store
    artifacts.store.cache_clear()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the engine is sent, which then answers no rows."""
    requests: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        return {"columns": [], "types": [], "rows": [], "truncated": False}

    monkeypatch.setattr(execution, "run_query", answer)
    return requests


def test_a_query_is_saved_read_changed_and_deleted(teams: Store) -> None:
    status, body = save(ANN, "Cost", description="What a week costs")
    assert status == 200
    made = body["query"]
    assert made["parameters"] == [SINCE]
    assert (made["created_by"], made["last_updated_by"], made["revision"]) == ("ann", "ann", 1)
    for spelling in ("Cost", "cost", "COST"):
        assert ask(BOB, "GET", f"/{spelling}") == (200, {"query": made})
    status, body = ask(ANN, "PATCH", "/cost", {"sql": "SELECT 2", "revision": 1})
    changed = body["query"]
    assert (status, changed["sql"], changed["revision"]) == (200, "SELECT 2", 2)
    assert changed["description"] == "What a week costs"
    listed = ask(BOB, "GET")[1]
    assert listed == {"queries": [{k: v for k, v in changed.items() if k != "sql"}]}
    assert ask(ANN, "DELETE", "/cost") == (200, {})
    assert ask(ANN, "GET", "/cost")[0] == 404
    assert ask(BOB, "GET")[1] == {"queries": []}


def test_only_owner_and_administrators_change(teams: Store) -> None:
    save(ANN)
    before = ask(BOB, "GET", "/cost")
    assert ask(BOB, "PATCH", "/cost", {"sql": "SELECT 2"})[0] == 403
    assert ask(BOB, "PATCH", "/COST", {"sql": "SELECT 2"})[0] == 403
    assert ask(BOB, "DELETE", "/cost")[0] == 403
    assert save(BOB, sql="SELECT 2")[1]["error_code"] == "RESOURCE_ALREADY_EXISTS"
    assert save(BOB, "COST")[1]["error_code"] == "RESOURCE_ALREADY_EXISTS"
    assert ask(BOB, "GET", "/cost") == before
    assert ask(ADMIN, "PATCH", "/cost", {"description": "d"})[0] == 200
    assert ask(BOB, "GET", "/cost")[1]["query"]["created_by"] == "ann"
    assert ask(ADMIN, "DELETE", "/cost") == (200, {})


def test_a_later_user_of_the_name_owns_nothing(teams: Store) -> None:
    save(ANN)
    user_items.delete(user_items.get_profile("ann"))
    user_items.ensure("ann")
    system_tables_readers.grant("ann", ["team-a"])
    assert ask(ANN, "GET", "/cost")[0] == 200
    assert ask(ANN, "PATCH", "/cost", {"sql": "SELECT 2"})[0] == 403
    assert ask(ANN, "DELETE", "/cost")[0] == 403


def test_who_may_not_ask_in_the_workspace_learns_nothing(
    teams: Store, sent: list[dict[str, Any]]
) -> None:
    """Answers are the same for a name that exists and one that does not."""
    save(ANN)
    for caller in (EVE, OLD):
        for name in ("cost", "Cost", "other", "co%73t"):
            path = f"/{name}"
            assert ask(caller, "GET", path)[0] == 403
            assert ask(caller, "PATCH", path, {"sql": "SELECT 2"})[0] == 403
            assert ask(caller, "PATCH", path, {"sql": ["SELECT 2"], "revision": "x"})[0] == 403
            assert ask(caller, "DELETE", path)[0] == 403
            assert run(caller, name)[0] == 403
            assert run(caller, name, parameters=[])[0] == 403
            assert save(caller, name)[0] == 403
        assert ask(caller, "GET")[0] == 403
        for guess in ({"workspace": "team-a"}, {"max_results": "1"}, {"name": "cost"}):
            assert ask(caller, "GET", "", guess)[0] == 403
    assert ask(EVE, "GET", "/cost", workspace="team-b")[0] == 404
    assert run(EVE, workspace="team-b")[0] == 404
    assert ask(EVE, "GET", workspace="team-b")[1] == {"queries": []}
    assert sent == []
    assert ask(ANN, "GET", "/cost")[1]["query"]["revision"] == 1


def test_a_workspace_in_the_body_is_no_other_workspace(teams: Store) -> None:
    save(ANN)
    body = {"name": "mine", "sql": "SELECT 1", "workspace": "team-a", "created_by": "ann"}
    assert ask(EVE, "POST", "", body, "team-b")[1]["query"]["created_by"] == "eve"
    named_twice = {"name": "cost", "sql": "SELECT 2"}
    assert ask(EVE, "PATCH", "/mine", named_twice, "team-b")[1]["query"]["name"] == "mine"
    listed = ask(ANN, "GET")[1]["queries"]
    assert [query["name"] for query in listed] == ["cost"]


def test_a_page_token_is_of_its_workspace(teams: Store) -> None:
    for name in ("b", "a", "C"):
        save(ANN, name)
    status, first = ask(ANN, "GET", "", {"max_results": 2})
    assert (status, [query["name"] for query in first["queries"]]) == (200, ["a", "b"])
    token = first["next_page_token"]
    second = ask(ANN, "GET", "", {"max_results": 2, "page_token": token})[1]
    assert ([query["name"] for query in second["queries"]], set(second)) == (["C"], {"queries"})
    assert ask(EVE, "GET", "", {"page_token": token}, "team-b")[0] == 400
    for wrong in ("x", "W10=", "bm9uZQ=="):
        assert ask(ANN, "GET", "", {"page_token": wrong})[0] == 400
    for most in ("0", "-1", "1001", "x", "1.5"):
        assert ask(ANN, "GET", "", {"max_results": most})[0] == 400


def test_pages_have_every_query_once(teams: Store) -> None:
    names = {f"{prefix}{number}" for prefix in ("q", "q.", "q-", "Q_") for number in range(7)}
    for name in names:
        assert save(ANN, name, sql="SELECT 1" + " " * 90_000)[0] == 200
    results: list[str] = []
    token: dict[str, str] = {}
    while True:
        body = ask(BOB, "GET", "", {"max_results": 5, **token})[1]
        results += [query["name"] for query in body["queries"]]
        if "next_page_token" not in body:
            break
        token = {"page_token": body["next_page_token"]}
    assert len(results) == len(names)
    assert set(results) == names
    assert [name.lower() for name in results] == sorted(name.lower() for name in names)


def test_a_repetition_changes_nothing(teams: Store) -> None:
    first = save(ANN)
    assert save(ANN) == first
    body = {"sql": "SELECT 2", "revision": 1}
    changed = ask(ANN, "PATCH", "/cost", body)
    assert changed[1]["query"]["revision"] == 2
    assert ask(ANN, "PATCH", "/cost", body) == changed
    assert save(ANN)[1]["error_code"] == "RESOURCE_ALREADY_EXISTS"
    assert ask(ANN, "PATCH", "/cost", {}) == changed


def test_an_update_of_an_old_revision_is_refused(teams: Store) -> None:
    save(ANN)
    ask(ANN, "PATCH", "/cost", {"sql": "SELECT 2"})
    status, body = ask(ANN, "PATCH", "/cost", {"sql": "SELECT 3", "revision": 1})
    assert (status, body["error_code"]) == (409, "RESOURCE_CONFLICT")
    assert ask(ANN, "DELETE", "/cost", {"revision": 1})[0] == 409
    assert ask(ANN, "GET", "/cost")[1]["query"]["sql"] == "SELECT 2"
    assert ask(ANN, "DELETE", "/cost", {"revision": 2}) == (200, {})


def test_one_of_many_who_save_the_same_name_wins(teams: Store) -> None:
    answers: list[tuple[int, Any]] = []

    def attempt(number: int) -> None:
        answers.append(save(ANN if number % 2 else BOB, sql=f"SELECT {number}"))

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(status for status, _ in answers) == [200, 400, 400, 400, 400, 400]
    (won,) = [body["query"] for status, body in answers if status == 200]
    assert ask(ANN, "GET", "/cost")[1]["query"] == won


def test_the_rights_are_those_of_the_caller(teams: Store, sent: list[dict[str, Any]]) -> None:
    """Not those of the owner: bob's rows of team-b are not ann's."""
    save(BOB)
    for caller in (ANN, BOB, ADMIN):
        assert run(caller)[0] == 200
    assert [call["workspaces"] for call in sent] == [["team-a"], ["team-a", "team-b"], None]
    assert [call["audited"] for call in sent] == [[], [], None]
    system_tables_readers.revoke("bob")
    assert run(BOB)[0] == 403
    system_tables_readers.grant("bob", ["team-b"])
    assert run(BOB)[0] == 403
    assert run(BOB, None, sql="SELECT 1")[0] == 200
    assert sent.pop()["workspaces"] == ["team-b"]
    assert ask(BOB, "PATCH", "/cost", {"sql": "SELECT 2"})[0] == 403
    assert run(ANN)[0] == 200


def test_parameters_are_values_and_not_sql(teams: Store, sent: list[dict[str, Any]]) -> None:
    save(ANN)
    for since in ("2026-01-01' OR 1=1 --", "now()", {"sql": "SELECT 1"}, ["2026-01-01"], 7, ""):
        status, body = run(ANN, parameters={"since": since})
        assert (status, body["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), since
    for extra in ({"sql": "SELECT 1"}, {"sINCE": "2026-01-01"}, {"casts": "x"}):
        assert run(ANN, parameters=extra)[0] == 400
    assert run(ANN, parameters="since=2026-01-01")[0] == 400
    assert run(ANN, format="html")[0] == 400
    assert sent == []
    assert run(ANN, sql="SELECT 2")[0] == 400
    assert run(ANN, sql="")[0] == 400
    assert run(ANN, casts={"since": "VARCHAR"})[0] == 200
    assert run(ANN, parameters={"since": "2026-02-01"}, fresh=False)[0] == 200
    assert [call["sql"] for call in sent] == [COST, COST]
    assert [call["parameters"]["since"] for call in sent] == ["2026-01-01", "2026-02-01"]
    assert [call["casts"] for call in sent] == [{"since": "DATE"}] * 2


def test_the_scope_sql_asks_and_saves_nothing(teams: Store, sent: list[dict[str, Any]]) -> None:
    save(ANN)

    def key(*scopes: str, workspace: str = "team-a", user: str = "ann") -> dict[str, Any]:
        limits = KeyLimits(workspace, scopes).encoded()
        return {"lambda": {"key_user": user, "key_id": "1-0", "scopes": limits}}

    of_sql = key("sql")
    assert ask(of_sql, "GET", "/cost")[0] == 200
    assert ask(of_sql, "GET")[0] == 200
    assert run(of_sql)[0] == 200
    assert save(of_sql, "other")[0] == 403
    assert ask(of_sql, "PATCH", "/cost", {"sql": "SELECT 2"})[0] == 403
    assert ask(of_sql, "DELETE", "/cost")[0] == 403
    for other in (key("read"), key("experiment:1"), key("sql", workspace="team-b")):
        assert ask(other, "GET", "/cost")[0] == 403
        assert run(other)[0] == 403
    administrator = {"lambda": {**key("sql", user="admin")["lambda"], "is_admin": True}}
    assert ask(administrator, "DELETE", "/cost")[0] == 403
    assert len(sent) == 1


@pytest.mark.parametrize(
    "body",
    [
        *("", "[]", "null", {"name": "cost"}, {"sql": "SELECT 1"}),
        {"name": "a b", "sql": "SELECT 1"},
        {"name": ["cost"], "sql": "SELECT 1"},
        {"name": "cost", "sql": ""},
        {"name": "cost", "sql": " \n"},
        {"name": "cost", "sql": ["SELECT 1"]},
        {"name": "cost", "sql": "SELECT '\x00'"},
        '{"name": "cost", "sql": "SELECT \\ud800"}',
        {"name": "cost", "sql": "ß" * 50_001},
        {"name": "cost", "sql": "SELECT 1", "description": "x" * 2001},
        {"name": "cost", "sql": "SELECT 1", "parameters": {}},
        {"name": "cost", "sql": "SELECT 1", "parameters": "since"},
        {"name": "cost", "sql": "SELECT :a", "parameters": [{"name": "a", "type": "blob"}]},
    ],
)
def test_what_is_no_query_is_refused(teams: Store, body: Any) -> None:
    status, answer = ask(ANN, "POST", "", body)
    assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert ask(ANN, "GET")[1] == {"queries": []}


def test_the_largest_query_fits(teams: Store) -> None:
    parameters = [
        {"name": f"{number:02}".rjust(64, "p"), "type": "text", "default": "\U0001f600" * 1000}
        for number in range(50)
    ]
    texts = {"sql": "€" * 33_333, "description": "€" * 2000}
    status, body = save(ANN, "x" * 100, parameters=parameters, **texts)
    assert (status, body["query"]["parameters"]) == (200, parameters)


def removed(mode: str) -> tuple[int, Any]:
    """Answers to the deletion of team-b."""
    event = {
        "rawPath": "/api/3.0/mlflow/workspaces/team-b",
        "rawQueryString": f"mode={mode}",
        "headers": {"host": "localhost"},
        "requestContext": {"http": {"method": "DELETE"}, "requestId": "test", "authorizer": ADMIN},
        "isBase64Encoded": False,
    }
    answer = workspaces.app.handler(event, None)
    return answer["statusCode"], json.loads(answer["body"] or "{}")


def test_queries_follow_their_workspace(teams: Store) -> None:
    save(EVE, workspace="team-b")
    status, body = removed("RESTRICT")
    assert status == 400
    assert "'saved_queries' still contains 1" in body["message"]
    assert save(ADMIN, "COST", workspace="default")[0] == 200
    status, body = removed("SET_DEFAULT")
    assert status == 400
    assert "saved_queries: 'cost'" in body["message"]
    ask(ADMIN, "DELETE", "/cost", workspace="default")
    assert removed("SET_DEFAULT")[0] == 204
    moved = ask(ADMIN, "GET", "/cost", workspace="default")[1]["query"]
    assert (moved["created_by"], moved["sql"]) == ("eve", COST)


def test_queries_go_with_their_workspace(teams: Store) -> None:
    save(EVE, workspace="team-b")
    assert removed("CASCADE")[0] == 204
    assert not [item for item in teams.items() if item["type"]["S"] == "saved_query"]
    assert save(ADMIN, workspace="team-b")[0] == 404


def test_what_calls_cost(teams: Store, sent: list[dict[str, Any]]) -> None:
    """Round trips and capacity without login, of a query of 1 KB and a list of 20."""
    budgets = {
        "create": lambda: ask({}, "POST", "", {"name": "n", "sql": "S" * 1000}, "default"),
        "get": lambda: ask({}, "GET", "/n", workspace="default"),
        "update": lambda: ask({}, "PATCH", "/n", {"description": "d"}, "default"),
        "list": lambda: ask({}, "GET", workspace="default"),
        "run": lambda: run({}, "n", "default"),
        "delete": lambda: ask({}, "DELETE", "/n", workspace="default"),
    }
    for number in range(20):
        save({}, f"m{number}", "default", sql="S" * 1000, parameters=[])
    measured = {}
    for name, call in budgets.items():
        assert call()[0] == 200
        last = capacity.last_measurement()
        assert last is not None
        measured[name] = (last.round_trips, last.read_units, last.write_units)
    assert {name: trips for name, (trips, _, _) in measured.items()} == {
        **{"create": 2, "get": 1, "update": 2, "list": 1, "run": 1, "delete": 2}
    }
    assert {name: reads for name, (_, reads, _) in measured.items()} == {
        **{"create": 1, "get": 1, "update": 1, "list": 6, "run": 1, "delete": 1}
    }
    assert {name: writes for name, (_, _, writes) in measured.items()} == {
        **{"create": 2, "get": 0, "update": 2, "list": 0, "run": 0, "delete": 2}
    }
