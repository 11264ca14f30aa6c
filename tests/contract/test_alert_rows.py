"""Rows in the messages of alerts, on real tables: those that the owner may read in the alert's
workspace, whatever the query asks for."""

from __future__ import annotations

import json

import pytest

import sql.app
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.alerts import Alert
from mlcore.environment import AUTHENTICATION
from mlcore.ids import now_ms
from mlcore.repos import alerts as stored_alerts
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.users import users
from mlcore.webhooks.announcement import parse
from tests.contract.api import Api
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

QUERIES = (
    "SELECT run_name AS name, 1 AS n FROM system.mlflow.runs_latest ORDER BY 1",
    "SELECT r.run_name AS name, 1 AS n FROM system.mlflow.runs_latest r "
    "JOIN system.mlflow.experiments_latest e ON TRUE ORDER BY 1",
    "SELECT name, 1 AS n FROM system.mlflow.experiments_latest ORDER BY 1",
    "SELECT array_join(collect_list(run_name), ' ') AS name, count(*) AS n "
    "FROM system.mlflow.runs_latest",
)


def _alert(name: str, owner: str, statement: str, workspace: str) -> Alert:
    user, now = users.get(owner), now_ms()
    return Alert(
        workspace=workspace,
        alert_id=f"al-{name}",
        name=name,
        sql=statement,
        parameters={},
        casts={},
        saved="",
        budget_policy_id="",
        condition="MAX(n) > 0",
        interval_minutes=60,
        for_evaluations=1,
        reminder_hours=0,
        is_enabled=True,
        destinations=(),
        created_by=owner,
        owner_id=user.user_id,
        key_id=None,
        last_updated_by=owner,
        created_at=now,
        last_updated_at=now,
        due_time=now,
    )


def test_hidden_rows_are_in_no_message(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "team-a", "team-b")
    for workspace in ("team-a", "team-b"):
        api = Api(workspace)
        made = api.post("experiments/create", name=f"experiment of {workspace}")
        for number in range(3):
            experiment_id = made["experiment_id"]
            name = f"run {number} of {workspace}"
            api.post("runs/create", experiment_id=experiment_id, run_name=name)
    tables.follow()
    monkeypatch.setenv(AUTHENTICATION, "basic")
    users.create("root", "", is_admin=True)
    for name in ("ann", "bob"):
        users.create(name, "", is_admin=False)
    system_tables_readers.grant("ann", ["team-a"])
    system_tables_readers.grant("bob", ["team-a", "team-b"])
    for number, statement in enumerate(QUERIES):
        for owner in ("ann", "bob", "root"):
            stored_alerts.write(_alert(f"{owner}{number}", owner, statement, "team-a"))
    done = sql.app.handler({"alerts": True}, None)
    assert len(done["met"]) == 3 * len(QUERIES), done
    for name in done["met"]:
        item = table.get(keys.alert("team-a", f"al-{name}"))
        assert item is not None
        event = parse(item["event"]["S"])
        text = json.dumps(event.data)
        assert "of team-a" in text
        assert "team-b" not in text
