"""Alerts of a workspace: who creates, sees, changes and counts them, in whose name they run, and
where their messages may go."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import workspaces.app
from mlcore.auth.api_key_scopes import KeyLimits
from mlcore.entities.alerts import Alert
from mlcore.entities.saved_queries import QueryParameter, SavedQuery
from mlcore.repos import alerts as stored_alerts
from mlcore.repos import saved_queries
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.users import api_keys
from mlcore.repos.users import users as user_items
from mlcore.webhooks import destination_values
from mlcore.webhooks.environment import webhook_settings
from tests.contract.alerts_world import AlertsWorld, of, teams, world
from tests.contract.logins import ADMIN, named

__all__ = ["teams", "world"]

ANN, BOB, EVE = named("ann"), named("bob"), named("eve")
PATCHES: tuple[dict[str, Any], ...] = (
    *({}, {"condition": "MAX(n) > 1"}, {"destinations": []}, {"revision": 1}, {"revision": 9}),
    *({"enabled": False}, {"saved": "q"}, {"interval_minutes": 7}),
)


def rows_asked(world: AlertsWorld) -> list[Any]:
    return [(request["workspaces"], request["audited"]) for request in world.asked]


def test_an_alert_is_created_read_changed_and_deleted(world: AlertsWorld) -> None:
    made = world.create("Slow", reminder_hours=4, for_evaluations=2)
    alert_id = made["alert_id"]
    assert made == {
        "alert_id": alert_id,
        "name": "Slow",
        "sql": "SELECT name, n FROM system.mlflow.runs_latest",
        "parameters": {},
        "condition": "MAX(n) > 5",
        "interval_minutes": 60,
        "for_evaluations": 2,
        "reminder_hours": 4,
        "enabled": True,
        "destinations": made["destinations"],
        "state": "UNKNOWN",
        **dict.fromkeys(("state_since", "value", "error", "last_evaluated_at"), None),
        **dict.fromkeys(("last_notified_at", "created_by", "last_updated_by"), None),
        "creation_time": world.now,
        "last_update_time": world.now,
        "revision": 1,
    }
    [destination] = made["destinations"]
    assert destination.keys() == {"destination_id", "type"}
    # Repeated, it is the same alert; another of its name is refused.
    assert world.create("Slow", reminder_hours=4, for_evaluations=2) == made
    for fields in ({}, {"destinations": []}, {"condition": "MAX(n) > 6"}):
        body = world.body("slow", **{"reminder_hours": 4, "for_evaluations": 2, **fields})
        if fields:
            assert world.ask("POST", "", body)[1]["error_code"] == "RESOURCE_ALREADY_EXISTS"
    assert world.get(alert_id) == made
    listed = world.ask("GET")[1]["alerts"]
    assert listed == [{k: v for k, v in made.items() if k not in ("sql", "parameters")}]
    hook = {"type": "webhook", "url": world.receiver.url("/x"), "secret": "s"}
    change = {"condition": "MAX(n) > 7", "destinations": [hook, {**destination}], "revision": 1}
    status, body = world.ask("PATCH", f"/{alert_id}", change)
    assert status == 200, body
    changed = body["alert"]
    assert (changed["condition"], changed["revision"]) == ("MAX(n) > 7", 2)
    assert changed["destinations"][1] == destination
    assert changed["destinations"][0]["host"] == "127.0.0.1"
    # Sent twice, it changes nothing, and so does an update with the same values.
    same = {"condition": "MAX(n) > 7", "destinations": [hook, destination]}
    assert world.ask("PATCH", f"/{alert_id}", same)[1]["alert"] == changed
    assert world.ask("PATCH", f"/{alert_id}", {"enabled": False, "revision": 1})[0] == 409
    assert world.ask("DELETE", f"/{alert_id}", {"revision": 1})[0] == 409
    assert world.ask("DELETE", f"/{alert_id}", {"revision": 2}) == (200, {})
    assert world.ask("GET", f"/{alert_id}")[0] == 404
    assert world.ask("GET")[1] == {"alerts": []}


def test_pages(world: AlertsWorld) -> None:
    names = [f"a{number}" for number in range(7)]
    for name in reversed(names):
        world.create(name)
    seen, token = [], ""
    for _ in range(4):
        page = world.ask("GET", "", {"max_results": 2, "page_token": token})[1]
        seen += [alert["name"] for alert in page["alerts"]]
        token = page.get("next_page_token", "")
    assert (seen, token) == (names, "")


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a b"},
        {"name": "é"},
        {"sql": " "},
        {"sql": None},
        {"saved": "q"},
        {"budget_policy_id": "b"},
        {"parameters": {"a b": 1}},
        {"parameters": {"a": [1]}},
        {"parameters": [1]},
        {"condition": "MAX(n)"},
        {"condition": "MAX(n) > 5; DROP TABLE x"},
        {"condition": "MAX(n) > " + "9" * 400},
        {"interval_minutes": 0},
        {"interval_minutes": 61},
        {"interval_minutes": 60 * 24 * 8},
        {"for_evaluations": 0},
        {"reminder_hours": -1},
        {"destinations": {"type": "sns"}},
        {"destinations": [{"type": "sns"}] * 6},
        {"destinations": [{"type": "mail", "url": "https://example.com"}]},
        {"destinations": [{"type": "sns", "url": "arn:aws:sns:us-east-1:1:other"}]},
        {"destinations": [{"type": "slack"}]},
        {"destinations": [{"type": "slack", "url": "https://8.8.8.8/", "secret": "s"}]},
        {"destinations": [{"type": "slack", "url": ["https://8.8.8.8/"]}]},
        {"destinations": [{"type": "slack", "url": "https://8.8.8.8/", "extra": ""}]},
        {"destinations": [{"destination_id": "unknown"}]},
        {"destinations": ["sns"]},
        *(
            {"destinations": [{"type": kind, "url": url}]}
            for kind in ("slack", "webhook")
            for url in (
                *("http://8.8.8.8/", "https://169.254.169.254/latest", "https://10.0.0.1/"),
                *("https://[::ffff:10.0.0.1]/", "https://localhost/", "file:///etc/passwd"),
                *("https://", "x", "https://8.8.8.8/" + "x" * 2_000),
            )
        ),
    ],
)
def test_refused(world: AlertsWorld, fields: dict[str, Any]) -> None:
    status, body = world.ask("POST", "", world.body(**fields))
    assert (status, body["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), body
    assert stored_alerts.of_workspace("default") == []


def test_addresses_are_checked_when_a_message_is_sent(
    world: AlertsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver's address was allowed when the alert was created."""
    world.create()
    monkeypatch.setenv("WEBHOOK_ALLOW_LOOPBACK", "false")
    webhook_settings.cache_clear()
    world.evaluate(9)
    with pytest.raises(Exception, match="its address is not allowed"):
        world.delivered()
    assert world.receiver.deliveries == []


def test_redirects_are_not_followed(world: AlertsWorld) -> None:
    world.receiver.answers["/slack"] = [302]
    world.receiver.headers["/slack"] = {"Location": world.receiver.url("/inside")}
    world.create()
    world.evaluate(9)
    assert [entry.path for entry in world.delivered()] == ["/slack"]


def test_addresses_are_sealed(world: AlertsWorld) -> None:
    world.create()
    for item in world.store.direct.scan(TableName=world.store.table)["Items"]:
        assert "/slack" not in json.dumps(item)


def test_others_see_change_count_and_guess_nothing(teams: AlertsWorld) -> None:
    status, body = of(teams, ANN)
    assert status == 200, body
    alert_id = body["alert"]["alert_id"]
    before = stored_alerts.of_workspace("team-a")
    missing = f"al-{0:032x}"
    # Bob reads the same rows, eve those of another workspace; to both it is as none.
    for caller, workspace in ((BOB, "team-a"), (BOB, "team-b"), (EVE, "team-b"), (ANN, "team-b")):
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/test")):
            for fields in PATCHES if method == "PATCH" else ({},):
                answers = [
                    teams.ask(method, f"/{asked}{path}", fields, caller, workspace)
                    for asked in (alert_id, missing)
                ]
                expected = json.loads(json.dumps(answers[1]).replace(missing, alert_id))
                assert list(answers[0]) == expected
                assert answers[0][0] in (403, 404), (caller, method, answers)
        if (caller, workspace) != (ANN, "team-b"):
            assert teams.ask("GET", "", None, caller, workspace) == (200, {"alerts": []})
    assert teams.ask("GET", f"/{alert_id}", None, EVE, "team-a")[0] == 403
    assert teams.ask("GET", "", None, EVE, "team-a")[0] == 403
    assert of(teams, EVE)[0] == 403
    # A name that ann has taken is free for bob.
    status, body = of(teams, BOB)
    assert (status, body["alert"]["revision"]) == (200, 1)
    assert [
        alert for alert in stored_alerts.of_workspace("team-a") if alert.created_by == "ann"
    ] == (before)
    assert [a["created_by"] for a in teams.ask("GET", "", None, BOB, "team-a")[1]["alerts"]] == [
        "bob"
    ]
    both = teams.ask("GET", "", None, ADMIN, "team-a")[1]["alerts"]
    assert {alert["created_by"] for alert in both} == {"ann", "bob"}
    status, body = teams.ask("PATCH", f"/{alert_id}", {"reminder_hours": 2}, ADMIN, "team-a")
    assert (status, body["alert"]["created_by"]) == (200, "ann")
    assert body["alert"]["last_updated_by"] == "admin"
    assert teams.ask("DELETE", f"/{alert_id}", None, ADMIN, "team-a") == (200, {})


def test_only_administrators_mail_to_operators(teams: AlertsWorld) -> None:
    body = teams.body(destinations=[{"type": "sns"}])
    assert teams.ask("POST", "", body, ANN, "team-a")[0] == 403
    made = of(teams, ANN)[1]["alert"]
    change = {"destinations": [{"type": "sns"}]}
    assert teams.ask("PATCH", f"/{made['alert_id']}", change, ANN, "team-a")[0] == 403
    assert teams.ask("POST", "", body, ADMIN, "team-a")[0] == 200


def test_a_query_reads_the_rows_of_its_workspace_only(teams: AlertsWorld) -> None:
    """Whoever owns it: an administrator, or somebody who reads other workspaces, too."""
    of(teams, BOB)
    of(teams, ADMIN)
    teams.evaluate(1)
    assert sorted(rows_asked(teams)) == [(["team-a"], []), (["team-a"], ["team-a"])]


def _without_grant(alert: Alert) -> None:
    system_tables_readers.revoke("ann")


def _deleted(alert: Alert) -> None:
    user_items.delete(user_items.get_profile("ann"))


def _made_anew(alert: Alert) -> None:
    _deleted(alert)
    user_items.ensure("ann")
    system_tables_readers.grant("ann", ["team-a"])


@pytest.mark.parametrize("lose", [_without_grant, _deleted, _made_anew])
def test_an_alert_ends_with_the_rights_of_its_owner(
    teams: AlertsWorld, lose: Callable[[Alert], None]
) -> None:
    alert_id = of(teams, ANN)[1]["alert"]["alert_id"]
    teams.evaluate(1)
    assert len(teams.asked) == 1
    lose(stored_alerts.get("team-a", alert_id))
    teams.evaluate(9)
    assert len(teams.asked) == 1
    assert teams.actions() == ["Alert cannot be evaluated: slow"]
    shown = teams.get(alert_id, caller=ADMIN, workspace="team-a")
    assert (shown["state"], shown["value"]) == ("ERROR", None)
    # A later user of the same name has nothing of it.
    if lose is _made_anew:
        assert teams.ask("GET", f"/{alert_id}", None, ANN, "team-a")[0] == 404
        assert teams.ask("GET", "", None, ANN, "team-a")[1] == {"alerts": []}


def test_keys(teams: AlertsWorld) -> None:
    """A key with scopes reads and saves nothing; an alert that a key has created ends when the key
    is revoked, and not when it expires."""
    ann = user_items.get("ann")
    key = api_keys.create(ann, "k", "team-a", None, None).key
    claims = {"key_user": "ann", "key_id": key.key_id, "is_admin": False, "scopes": ""}
    alert_id = of(teams, {"lambda": claims})[1]["alert"]["alert_id"]
    scoped = {"lambda": {**claims, "scopes": KeyLimits("team-a", ("sql",)).encoded()}}
    assert teams.ask("GET", f"/{alert_id}", None, scoped, "team-a")[0] == 200
    assert of(teams, scoped, "other")[0] == 403
    for method, path in (("PATCH", ""), ("DELETE", ""), ("POST", "/test")):
        assert teams.ask(method, f"/{alert_id}{path}", {}, scoped, "team-a")[0] == 403
    for scopes in (("read",), ("experiment:1",)):
        other = {"lambda": {**claims, "scopes": KeyLimits("team-a", scopes).encoded()}}
        assert teams.ask("GET", f"/{alert_id}", None, other, "team-a")[0] == 403
    api_keys.expire(key, teams.now)
    teams.evaluate(1)
    assert len(teams.asked) == 1
    api_keys.delete(key.key_id)
    teams.evaluate(9)
    assert len(teams.asked) == 1
    assert teams.actions() == ["Alert cannot be evaluated: slow"]


def test_a_saved_query_is_copied(teams: AlertsWorld) -> None:
    """Bob, who may change it later, does not change what runs in ann's name."""
    bob = user_items.get("bob")
    query = SavedQuery(
        workspace="team-a",
        name="Cost",
        sql="SELECT n FROM t WHERE day > :since",
        description="",
        parameters=(QueryParameter("since", "date"), QueryParameter("n", "integer", True, 3)),
        created_by="bob",
        owner_id=bob.user_id,
        last_updated_by="bob",
        created_at=0,
        last_updated_at=0,
        revision=0,
    )
    saved = saved_queries.write(query)
    fields = {name: value for name, value in teams.body().items() if name != "sql"}
    for parameters, status in (({}, 400), ({"since": "x"}, 400), ({"since": "2026-01-31"}, 200)):
        body = {**fields, "saved": "cost", "parameters": parameters}
        assert teams.ask("POST", "", body, ANN, "team-a")[0] == status
    saved_queries.write(saved._replace(sql="SELECT password FROM everything"))
    teams.evaluate(1)
    [request] = teams.asked
    assert "SELECT n FROM t WHERE day > :since" in request["sql"]
    assert request["parameters"] == {"since": "2026-01-31", "n": 3}
    assert request["casts"] == {"since": "DATE"}


def test_an_alert_moves_and_is_removed_with_its_workspace(teams: AlertsWorld) -> None:
    def delete(workspace: str, mode: str) -> int:
        event = {
            "version": "2.0",
            "rawPath": f"/api/3.0/mlflow/workspaces/{workspace}",
            "rawQueryString": f"mode={mode}",
            "headers": {"host": "localhost"},
            "requestContext": {
                "http": {"method": "DELETE"},
                "requestId": "test",
                "authorizer": ADMIN,
            },
            "isBase64Encoded": False,
        }
        return int(workspaces.app.handler(event, None)["statusCode"])

    alert_id = of(teams, ADMIN)[1]["alert"]["alert_id"]
    of(teams, ADMIN, workspace="team-b")
    teams.evaluate(9)
    assert teams.actions() == ["Alert triggered: slow"] * 2
    assert delete("team-a", "RESTRICT") == 400
    assert delete("team-a", "SET_DEFAULT") == 204
    assert delete("team-b", "CASCADE") == 204
    assert stored_alerts.of_workspace("team-a") == stored_alerts.of_workspace("team-b") == []
    [moved] = stored_alerts.of_workspace("default")
    assert (moved.alert_id, moved.state.state) == (alert_id, "TRIGGERED")
    stored = stored_alerts.get("default", alert_id)
    [destination] = stored.destinations
    address = destination_values.open_address(destination, "default")
    assert address.url == teams.receiver.url("/slack")
    teams.evaluate(1)
    assert teams.actions() == ["Alert resolved: slow"]
