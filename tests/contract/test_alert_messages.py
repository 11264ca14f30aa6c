"""What receivers of alerts get: Slack, webhooks and the topics of the deployment."""

from __future__ import annotations

import json

import pytest

from mlcore import topics
from mlcore.errors import TemporarilyUnavailable
from mlcore.system_tables import alert_files as files
from mlcore.system_tables import storage
from mlcore.webhooks import delivery
from tests.contract.alerts_world import AlertsWorld, world
from webhook_sender import app as sender

__all__ = ["world"]

TRIGGERED = "Alert triggered: slow"


def test_values_of_rows_cannot_speak_slacks_language(world: AlertsWorld) -> None:
    hostile = "<!channel> <https://evil.example|sign in> & ```*bold*```"
    world.rows = [[hostile, n] for n in range(50)] + [["x" * 5_000, None]]
    world.create()
    world.evaluate(9)
    [slack] = world.delivered()
    text = slack.body["text"]
    assert "<" not in text
    assert ">" not in text
    assert "&lt;!channel&gt;" in text
    assert text.count("```") == 2
    assert text.count("sign in") == 10
    assert len(text) < 5_000


def test_the_largest_alert_can_be_written(world: AlertsWorld) -> None:
    """With all that the limits allow, in characters that take the most bytes."""
    wide = "\U0001f600"
    world.rows = [[wide * 5_000] * 20 for _ in range(20)]
    url = world.receiver.url("/slack?" + "x" * 1_900)
    destinations = [{"type": "webhook", "url": url, "secret": "s" * 500} for _ in range(5)]
    world.create(
        "a" * 100,
        sql="SELECT '" + wide * 24_990 + "'",
        parameters={f"p{number}": wide * 800 for number in range(2)},
        destinations=destinations,
    )
    assert world.evaluate(9)["met"] == ["a" * 100]
    assert len(world.delivered()) == 5
    body = world.body("b", parameters={f"p{n}": "x" * 999 for n in range(50)})
    assert world.ask("POST", "", body)[0] == 400


def test_a_webhook_gets_a_signed_body(world: AlertsWorld) -> None:
    secret = "the secret of a receiver"
    destination = {"type": "webhook", "url": world.receiver.url("/hook"), "secret": secret}
    alert = world.create(destinations=[destination])
    world.evaluate(9)
    [hook] = world.delivered()
    body = json.loads(hook.text)
    assert (body["entity"], body["action"]) == ("alert", "triggered")
    assert body["data"] | {"since": 0, "dashboards": ""} == {
        "alert_id": alert["alert_id"],
        "name": "slow",
        "condition": "MAX(n) > 5",
        "state": "TRIGGERED",
        "since": 0,
        "value": "9",
        "error": None,
        "owner": None,
        "columns": ["name", "n"],
        "rows": [["a", "1"]],
        "dashboards": "",
    }
    headers = hook.headers
    assert headers["x-mlflow-signature"] == delivery.signature(
        secret, headers["x-mlflow-delivery-id"], headers["x-mlflow-timestamp"], hook.text
    )
    for item in world.store.direct.scan(TableName=world.store.table)["Items"]:
        assert secret not in json.dumps(item)
        assert "/hook" not in json.dumps(item)


def test_topics_of_the_deployment(world: AlertsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    mails: list[tuple[str, str, str]] = []
    monkeypatch.setattr(topics, "publish", lambda *mail: mails.append(mail))
    monkeypatch.setenv(topics.ALERT_TOPICS, ",arn:a,arn:b")
    storage.store().put(f"{files.FOLDER}/low_reliability.sql", b"-- when: MIN(x) < 0\nSELECT 1")
    world.create(destinations=[{"type": "sns"}])
    world.rows = [["a\x00b\nc", 1]]
    world.evaluate(9)
    assert world.delivered() == []
    assert [mail[:2] for mail in mails] == [("arn:a", TRIGGERED), ("arn:b", TRIGGERED)]
    assert "Value: 9" in mails[0][2]
    assert "ab c | 1" in mails[0][2]


def test_a_topic_that_fails_repeats_no_mail_of_another(
    world: AlertsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    mails: list[str] = []

    def publish(topic: str, *_: str) -> None:
        if topic == "arn:b":
            raise TemporarilyUnavailable("no")
        mails.append(topic)

    monkeypatch.setattr(topics, "publish", publish)
    monkeypatch.setenv(topics.ALERT_TOPICS, "arn:a,arn:b,arn:c")
    world.create(destinations=[{"type": "sns"}])
    world.evaluate(9)
    with pytest.raises(sender.NotDelivered):
        world.delivered()
    left = {entry.delivery_id: entry for entry in world.handed_over}
    assert len(left) == 3
    mails.clear()
    for _ in range(3):
        for delivery_id, entry in list(left.items()):
            try:
                sender.deliver(entry)
            except sender.NotDelivered:
                continue
            left.pop(delivery_id)
    assert mails == ["arn:a", "arn:c"]
    # A topic that the deployment has no more gets nothing.
    monkeypatch.setenv(topics.ALERT_TOPICS, "arn:a")
    assert sender.deliver(next(iter(left.values()))) == "webhook no longer subscribed"


def test_a_test_message_changes_no_state(world: AlertsWorld) -> None:
    alert = world.create()
    for _ in range(2):
        assert world.ask("POST", f"/{alert['alert_id']}/test") == (200, {"destinations": 1})
        assert world.actions() == ["Test of an alert: slow"]
    assert world.get(alert["alert_id"]) == alert
    world.evaluate(9)
    assert world.actions() == [TRIGGERED]
