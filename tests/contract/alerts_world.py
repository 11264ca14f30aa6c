"""Alerts from the request that creates one to the receiver of a message, with the stream, the queue
and the sender between them; the value of every query is what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import indexer.app
import sql.app
import workspaces.app
from mlcore import artifacts, ids, queues, topics
from mlcore.environment import AUTHENTICATION
from mlcore.gateway import budgets as gateway_budgets
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.users import users as user_items
from mlcore.system_tables import storage
from mlcore.webhooks import delivery_message
from mlcore.webhooks.environment import webhook_settings
from sql import alert_evaluation, due_alerts, execution
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.sealing import seal_here
from tests.contract.streams import Stream, following
from tests.receiver import Delivery, Receiver, receiving
from webhook_sender import app as sender

ALERTS = "/api/3.0/mlflow-serverless/alerts"
MINUTE = 60_000
HOUR_MINUTES = 60
START = 1_780_000_000_000


class AlertsWorld:
    def __init__(self, store: Store, stream: Stream, receiver: Receiver) -> None:
        self.store, self._stream, self.receiver = store, stream, receiver
        self.value: Any = 0.0
        """What the engine answers; an exception is raised."""
        self.rows: list[list[Any]] = [["a", 1]]
        self.asked: list[dict[str, Any]] = []
        self._engine: Callable[[dict[str, Any]], dict[str, Any]] = self.query
        self.now = START
        self.handed_over: list[delivery_message.DeliveryMessage] = []
        """The messages of the queue so far."""

    def patch_query(self, query: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Replaces what the engine does."""
        self._engine = query

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        return self._engine(request)

    def query(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        if isinstance(self.value, Exception):
            raise self.value
        if "AS alert_rows" in request["sql"]:
            return {"columns": ["value"], "rows": [[self.value]], "truncated": False}
        return {"columns": ["name", "n"], "rows": self.rows, "truncated": False}

    def ask(
        self,
        method: str,
        path: str = "",
        body: Any = None,
        caller: Any = None,
        workspace: str = "",
    ) -> tuple[int, Any]:
        event: dict[str, Any] = {
            "version": "2.0",
            "rawPath": ALERTS + path,
            "rawQueryString": urlencode(body) if method == "GET" and body else "",
            "headers": {
                "content-type": "application/json",
                "host": "localhost",
                **({"x-mlflow-workspace": workspace} if workspace else {}),
            },
            "requestContext": {
                "http": {"method": method},
                "requestId": "test",
                **({"authorizer": caller} if caller else {}),
            },
            "isBase64Encoded": False,
        }
        if method != "GET" and body is not None:
            event["body"] = json.dumps(body)
        answer = workspaces.app.handler(event, None)
        text = answer["body"]
        return answer["statusCode"], json.loads(text) if text.startswith("{") else text

    def create(self, name: str = "slow", **fields: Any) -> dict[str, Any]:
        status, body = self.ask("POST", "", self.body(name, **fields))
        assert status == 200, body
        return dict(body["alert"])

    def body(self, name: str = "slow", **fields: Any) -> dict[str, Any]:
        destination = {"type": "slack", "url": self.receiver.url("/slack")}
        return {
            "name": name,
            "sql": "SELECT name, n FROM system.mlflow.runs_latest",
            "condition": "MAX(n) > 5",
            "interval_minutes": 60,
            "destinations": [destination],
            **fields,
        }

    def get(self, alert_id: str, **fields: Any) -> dict[str, Any]:
        return dict(self.ask("GET", f"/{alert_id}", **fields)[1]["alert"])

    def evaluate(self, value: Any = None, minutes: int = 60) -> dict[str, Any]:
        """Lets time pass, and calls the function as its schedule does."""
        if value is not None:
            self.value = value
        self.now += minutes * MINUTE
        return dict(sql.app.handler({"alerts": True}, None))

    def delivered(self) -> list[Delivery]:
        """Handles what the stream has, every record twice, as a stream may hand it over, and
        returns what receivers have got since the last call."""
        records = self._stream.fresh()
        seen, count = set(), len(self.receiver.deliveries)
        already = {entry.delivery_id for entry in self.handed_over}
        before = len(self.handed_over)
        for _ in range(2):
            assert indexer.app.index(records) is None
        for entry in self.handed_over[before:]:
            if entry.delivery_id not in seen | already:
                seen.add(entry.delivery_id)
                sender.deliver(entry)
        return self.receiver.deliveries[count:]

    def actions(self) -> list[str]:
        """The headlines of what Slack has got since the last call."""
        return [entry.body["text"].split("\n")[0].strip("*") for entry in self.delivered()]


@pytest.fixture
def world(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AlertsWorld]:
    monkeypatch.setenv(storage.FOLDER, str(tmp_path / "tables"))
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "artifacts"))
    monkeypatch.setenv("WEBHOOK_ALLOW_LOOPBACK", "true")
    monkeypatch.setenv("WEBHOOK_QUEUE_URL", "queue")
    monkeypatch.setenv("INDEX_LAG_MS", "0")
    monkeypatch.delenv(topics.ALERT_TOPICS, raising=False)
    seal_here(monkeypatch, tmp_path)
    for cache in (webhook_settings, storage.store, artifacts.store):
        cache.cache_clear()
    with following(store) as stream, receiving() as receiver:
        made = AlertsWorld(store, stream, receiver)

        def send(_: str, messages: list[queues.QueueMessage]) -> None:
            made.handed_over.extend(delivery_message.parse(queued.body) for queued in messages)

        monkeypatch.setattr(queues, "send", send)
        monkeypatch.setattr(execution, "run_query", made.run)
        for module in (ids, due_alerts, alert_evaluation, gateway_budgets):
            monkeypatch.setattr(module, "now_ms", lambda: made.now)
        yield made
    for cache in (webhook_settings, storage.store, artifacts.store):
        cache.cache_clear()


@pytest.fixture
def teams(world: AlertsWorld, monkeypatch: pytest.MonkeyPatch) -> AlertsWorld:
    """Ann and bob read the rows of team-a, bob also those of team-b; eve those of team-b."""
    enable_workspaces(monkeypatch, "team-a", "team-b")
    monkeypatch.setenv(AUTHENTICATION, "basic")
    user_items.create("admin", "", is_admin=True)
    for name in ("ann", "bob", "eve"):
        user_items.ensure(name)
    system_tables_readers.grant("ann", ["team-a"])
    system_tables_readers.grant("bob", ["team-a", "team-b"])
    system_tables_readers.grant("eve", ["team-b"])
    return world


def of(world: AlertsWorld, caller: Any, name: str = "slow", workspace: str = "team-a") -> Any:
    return world.ask("POST", "", world.body(name), caller, workspace)
