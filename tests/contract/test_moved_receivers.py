"""Messages that wait in the queue while their workspace is deleted: its webhooks and alerts move to
the default workspace and still get them, or are deleted and get nothing."""

from __future__ import annotations

import json

import pytest

from mlcore import ids
from mlcore.entities.webhooks import ACTIVE, EventName, Webhook
from mlcore.repos import webhooks
from mlcore.webhooks import delivery, secret_values
from mlcore.webhooks.delivery_message import DeliveryMessage
from tests.contract.alerts_world import AlertsWorld, world
from tests.contract.conftest import enable_workspaces
from tests.contract.workspace_calls import V3, ask
from webhook_sender import app as sender

__all__ = ["world"]

CREATED = EventName("registered_model", "created")
SECRET = "the secret of a receiver"


def waiting_webhook(world: AlertsWorld) -> DeliveryMessage:
    webhook = Webhook("hook", "team-a", "n", "", (CREATED,), ACTIVE, "", "", 0, 0)
    webhooks.put(
        webhook._replace(
            url=world.receiver.url("/hook"),
            sealed_secret=secret_values.seal(SECRET, "team-a", "hook"),
        )
    )
    return DeliveryMessage("team-a", "hook", "d", CREATED, ids.now_ms(), {"name": "m"})


@pytest.mark.parametrize("mode", ["SET_DEFAULT", "CASCADE"])
def test_a_workspace_is_deleted_while_messages_wait(
    world: AlertsWorld, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    enable_workspaces(monkeypatch, "team-a")
    to_webhook = waiting_webhook(world)
    destination = {"type": "webhook", "url": world.receiver.url("/alert"), "secret": SECRET}
    status, body = world.ask("POST", "", world.body(destinations=[destination]), None, "team-a")
    assert status == 200, body
    assert world.evaluate(9)["met"] == ["slow"]
    deliver = sender.deliver
    with monkeypatch.context() as patch:
        patch.setattr(sender, "deliver", lambda _: "it waits")
        assert world.delivered() == []
    to_alert = world.handed_over[0]
    answer = ask("DELETE", f"{V3}/team-a", mode=mode)
    assert answer.status in (200, 204), answer
    outcomes = [deliver(message) for message in (to_webhook, to_alert)]
    if mode == "CASCADE":
        assert outcomes == ["webhook no longer subscribed"] * 2
        assert world.receiver.deliveries == []
        return
    assert outcomes == ["webhook delivered"] * 2
    for got, name in zip(world.receiver.deliveries, ("registered_model", "alert"), strict=True):
        assert json.loads(got.text)["entity"] == name
        assert got.headers["x-mlflow-signature"] == delivery.signature(
            SECRET,
            got.headers["x-mlflow-delivery-id"],
            got.headers["x-mlflow-timestamp"],
            got.text,
        )
