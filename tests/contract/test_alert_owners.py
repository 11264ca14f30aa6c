"""Alerts of owners who lose rights, or whose rights are not stored; and what errors tell them."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from mlcore import topics
from mlcore.repos import alerts as stored_alerts
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.users import users as user_items
from tests.contract.alerts_world import AlertsWorld, of, teams, world
from tests.contract.logins import ADMIN, named

__all__ = ["teams", "world"]

ANN, BOB = named("ann"), named("bob")


def test_who_is_no_administrator_any_more_mails_to_nobody(
    teams: AlertsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(topics.ALERT_TOPICS, "arn:a")
    mails: list[str] = []
    monkeypatch.setattr(topics, "publish", lambda _, subject, __: mails.append(subject))
    body = teams.body(destinations=[{"type": "sns"}])
    made = teams.ask("POST", "", body, ADMIN, "team-a")[1]["alert"]
    user_items.update("admin", is_admin=False)
    system_tables_readers.grant("admin", ["team-a"])
    former = named("admin")
    path, [kept] = f"/{made['alert_id']}", made["destinations"]
    for change in (
        {"condition": "MAX(n) > 6"},
        {"destinations": [{"destination_id": kept["destination_id"]}], "reminder_hours": 1},
        {"enabled": False, "condition": "MAX(n) > 6"},
    ):
        assert teams.ask("PATCH", path, change, former, "team-a")[0] == 403
    assert teams.ask("POST", f"{path}/test", None, former, "team-a")[0] == 403
    teams.evaluate(9)
    teams.delivered()
    # All others are of the built-in alert.
    assert {tuple(request["workspaces"] or ()) for request in teams.asked} == {()}
    assert mails == ["Alert cannot be evaluated: slow"]
    assert teams.ask("PATCH", path, {"destinations": []}, former, "team-a")[0] == 200
    assert teams.evaluate(9)["met"] == ["slow"]


def test_an_owner_without_rights_disables_and_deletes(teams: AlertsWorld) -> None:
    path = f"/{of(teams, ANN)[1]['alert']['alert_id']}"
    others = f"/{of(teams, BOB)[1]['alert']['alert_id']}"
    system_tables_readers.revoke("ann")
    for change in ({"enabled": True}, {"enabled": False, "sql": "SELECT 1"}, {}):
        assert teams.ask("PATCH", path, change, ANN, "team-a")[0] == 403
    assert teams.ask("GET", path, None, ANN, "team-a")[0] == 403
    assert teams.ask("PATCH", others, {"enabled": False}, ANN, "team-a")[0] == 404
    assert teams.ask("DELETE", others, None, ANN, "team-a")[0] == 404
    assert teams.ask("PATCH", path, {"enabled": False}, ANN, "team-a")[0] == 200
    assert teams.ask("DELETE", path, None, ANN, "team-a") == (200, {})


def test_rights_that_are_not_stored_make_no_alert(teams: AlertsWorld) -> None:
    """A login, such as one with a group, says that ann is an administrator."""
    claims = named("ann")["lambda"] | {"is_admin": True}
    system_tables_readers.revoke("ann")
    status, body = of(teams, {"lambda": claims})
    assert (status, body["error_code"]) == (403, "PERMISSION_DENIED")
    assert "rights that are stored" in body["message"]
    assert stored_alerts.of_workspace("team-a") == []


def test_errors_tell_readers_nothing_of_private_names(
    teams: AlertsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        if host == "inside":
            return [(0, 0, 0, "", ("10.1.2.3", 0))]
        raise OSError("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    def answers(caller: Any) -> list[Any]:
        return [
            teams.ask(
                "POST",
                "",
                teams.body(destinations=[{"type": "slack", "url": f"https://{host}/"}]),
                caller,
                "team-a",
            )
            for host in ("inside", "nowhere")
        ]

    inside, nowhere = answers(ANN)
    assert inside == nowhere
    assert inside[0] == 400
    assert "10.1.2.3" in answers(ADMIN)[0][1]["message"]


def test_a_change_checks_what_it_sets(world: AlertsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval was allowed before the schedule of the deployment was changed."""
    path = f"/{world.create()['alert_id']}"
    monkeypatch.setenv("ALERT_MINUTES", "45")
    assert world.ask("PATCH", path, {"condition": "MAX(n) > 6"})[0] == 200
    assert world.ask("PATCH", path, {"interval_minutes": 60})[0] == 400
