"""Webhooks on the real engine: what a call costs, what the stream announces, who sees which."""

from __future__ import annotations

import random
from base64 import b64encode
from collections import Counter

import pytest

import indexer.app
from mlcore import file_removal_queue, queues
from mlcore.entities.webhooks import ACTIONS, ACTIVE, EventName, Webhook
from mlcore.entities.workspaces import Workspace
from mlcore.errors import TemporarilyUnavailable
from mlcore.file_removal_queue import Removal
from mlcore.repos import webhooks
from mlcore.repos.workspaces import workspaces
from mlcore.webhooks import delivery_message
from mlcore.webhooks.delivery_message import DeliveryMessage
from tests.contract.api import Api
from tests.contract.conftest import Store
from tests.contract.kubeflow_api import KubeflowApi, properties
from tests.contract.streams import following

ALL = tuple(EventName(entity, action) for entity in ACTIONS for action in ACTIONS[entity])


def webhook(webhook_id: str, workspace: str = "default", created: int = 0) -> Webhook:
    return Webhook(webhook_id, workspace, "n", "https://x", ALL, ACTIVE, "", "", created, created)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[DeliveryMessage]:
    """The messages that the indexer queues."""
    results: list[DeliveryMessage] = []

    def send(_: str, messages: list[queues.QueueMessage]) -> None:
        results.extend(delivery_message.parse(queued.body) for queued in messages)

    monkeypatch.setenv("WEBHOOK_QUEUE_URL", "queue")
    monkeypatch.setattr(queues, "send", send)
    return results


def of_registry(api: Api, name: str) -> list[tuple[int, int, float]]:
    """A life in the registry; round trips, requests and write units of each call."""
    costs = []

    def call(method: str, path: str, **fields: object) -> None:
        assert api.ask(method, path, **fields).status == 200, path
        costs.append((api.cost.round_trips, api.cost.requests, api.cost.write_units))

    call("POST", "registered-models/create", name=name, tags=[{"key": "a", "value": "b"}])
    call("POST", "model-versions/create", name=name, source="s3://b/m")
    tag = {"key": "k", "value": "v"}
    call("POST", "model-versions/set-tag", name=name, version="1", **tag)
    call("POST", "model-versions/set-tag", name=name, version="1", **tag)
    call("DELETE", "model-versions/delete-tag", name=name, version="1", key="k")
    call("POST", "registered-models/set-tag", name=name, **tag)
    call("POST", "registered-models/alias", name=name, alias="x", version="1")
    call("PATCH", "model-versions/update", name=name, version="1", description="d")
    call("POST", "registered-models/rename", name=name, new_name=f"{name}2")
    call("DELETE", "registered-models/alias", name=f"{name}2", alias="x")
    call("POST", "registered-models/alias", name=f"{name}2", alias="y", version="1")
    call("DELETE", "model-versions/delete", name=f"{name}2", version="1")
    call("DELETE", "registered-models/delete", name=f"{name}2")
    return costs


EVENTS = Counter(
    {
        ("registered_model.created", "m"): 1,
        ("model_version.created", "m"): 1,
        ("model_version_tag.set", "m"): 2,
        ("model_version_tag.deleted", "m"): 1,
        ("model_version_alias.created", "m"): 1,
        ("model_version_alias.deleted", "m2"): 1,
        ("model_version_alias.created", "m2"): 1,
    }
)


def test_a_call_costs_the_same_whoever_listens(store: Store) -> None:
    without = of_registry(store.api, "m")
    for number in range(20):
        webhooks.put(webhook(f"w{number}"))
    assert of_registry(store.api, "n") == without


def test_the_stream_tells_each_event_once_however_often_it_is_read(
    store: Store, sent: list[DeliveryMessage]
) -> None:
    workspaces.create(Workspace("other", None))
    for hook in (webhook("w1"), webhook("w2"), webhook("w3", workspace="other")):
        webhooks.put(hook)
    with following(store) as stream:
        of_registry(store.api, "m")
        records = stream.fresh()
    assert indexer.app.index(records) is None
    counter = Counter(
        (str(delivery.event), delivery.data["name"])
        for delivery in sent
        if delivery.webhook_id == "w1"
    )
    assert counter == EVENTS
    ids = {delivery.delivery_id for delivery in sent}
    assert len(ids) == len(sent) == 2 * EVENTS.total()
    for start in (0, len(records) // 2):
        assert indexer.app.index(records[start:]) is None
    assert {delivery.delivery_id for delivery in sent} == ids


def test_one_write_of_several_tags_tells_of_each(store: Store, sent: list[DeliveryMessage]) -> None:
    webhooks.put(webhook("w"))
    kubeflow = KubeflowApi()
    version = kubeflow.version(kubeflow.model("m")["id"], "v", customProperties=properties(a=1))
    with following(store) as stream:
        new_properties = properties(b="x", c=2)
        kubeflow.patch(f"model_versions/{version['id']}", customProperties=new_properties)
        records = stream.fresh()
    sent.clear()
    for _ in range(2):
        assert indexer.app.index(records) is None
    tag_events = {
        (
            str(delivery.event),
            delivery.data["key"],
            delivery.data.get("value"),
            delivery.delivery_id,
        )
        for delivery in sent
        if "tag" in str(delivery.event)
    }
    assert sorted(event[:3] for event in tag_events) == [
        ("model_version_tag.deleted", "a", None),
        ("model_version_tag.set", "b", "x"),
        ("model_version_tag.set", "c", "2"),
    ]


def test_a_message_is_never_too_large_for_the_queue(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies: list[str] = []
    monkeypatch.setenv("WEBHOOK_QUEUE_URL", "queue")
    monkeypatch.setattr(
        queues, "send", lambda _, messages: bodies.extend(queued.body for queued in messages)
    )
    webhooks.put(webhook("w"))
    rng = random.Random(7)
    texts = [b64encode(rng.randbytes(72_000)).decode() for _ in range(14)]
    tags = [{"key": f"t{number}", "value": text} for number, text in enumerate(texts)]
    fields = {"name": "m", "tags": tags, "description": "long"}
    with following(store) as stream:
        assert store.api.ask("POST", "registered-models/create", **fields).status == 200
        assert indexer.app.index(stream.fresh()) is None
    [body] = bodies
    assert len(body) < 2**20  # SQS accepts no more
    data = delivery_message.parse(body).data
    assert (data["name"], data["tags"], data["description"]) == ("m", {}, "long")


def test_a_queue_that_is_down_brings_the_records_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TemporarilyUnavailable("no queue")

    monkeypatch.setenv("WEBHOOK_QUEUE_URL", "queue")
    monkeypatch.setattr(queues, "send", refuse)
    webhooks.put(webhook("w"))
    with following(store) as stream:
        assert store.api.ask("POST", "registered-models/create", name="m").status == 200
        records = stream.fresh()
    [event_record] = [
        record for record in records if "event" in record["dynamodb"].get("NewImage", {})
    ]
    assert indexer.app.index(records) == event_record["dynamodb"]["SequenceNumber"]


def test_a_workspace_sees_its_own(store: Store) -> None:
    workspaces.create(Workspace("other", None))
    for number in range(3):
        webhooks.put(webhook(f"w{number}", created=number))
        webhooks.put(webhook(f"w{number}", workspace="other"))
    webhooks.delete(webhook("w1", workspace="other"))
    assert [hook.webhook_id for hook in webhooks.of_workspace("default")] == ["w2", "w1", "w0"]
    assert webhooks.find("other", "w1") is None
    assert webhooks.change(webhook("w1", workspace="other"), {"name": "x"}) is None
    changed = webhooks.change(webhook("w1"), {"name": "x", "events": ALL[:1], "description": ""})
    assert changed is not None
    assert changed == webhooks.find("default", "w1")
    assert (changed.name, changed.events) == ("x", ALL[:1])


def test_a_removal_that_keeps_too_much_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQS would refuse its message each time, so the indexer would not get past its record."""
    queued: list[queues.QueueMessage] = []
    monkeypatch.setattr(queues, "send", lambda _, messages: queued.extend(messages))
    below = [f"shared/{n:01000}" for n in range(1000)]
    removals = [Removal("default", 1, "shared", below), Removal("default", 1, "other", below[:900])]
    file_removal_queue.send("queue", removals)
    assert [file_removal_queue.parse(each.body).key for each in queued] == ["other"]
    file_removal_queue.send("queue", removals[:1])
    assert len(queued) == 1
