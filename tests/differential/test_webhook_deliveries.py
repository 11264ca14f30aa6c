"""What receivers get from the stock server and from the product after the same calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from mlcore.entities.webhooks import ACTIONS
from mlcore.webhooks.delivery import signature
from tests.differential.pair import Pair, pair
from tests.differential.rest import API, Call, post
from tests.engines import memory_folder
from tests.receiver import Delivery, Receiver, receiving
from tests.servers import start_product, start_stock, stopped

pytestmark = pytest.mark.e2e

OPEN = {"MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "http", "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true"}
SECRET = "s3cr€t"
PROMPT = {"key": "mlflow.prompt.is_prompt", "value": "true"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both with MLflow's settings for receivers on this machine."""
    with (
        stopped(start_product(tmp_path_factory.mktemp("product"), port=None, **OPEN)) as product,
        memory_folder() as folder,
        stopped(start_stock(folder, **OPEN)) as stock,
        pair(stock.url, product.url) as both,
    ):
        yield both


@pytest.fixture
def receiver(servers: Pair) -> Iterator[Receiver]:
    """Where both send all events, each to a path of its own."""
    events = [
        {"entity": entity.upper(), "action": action.upper()}
        for entity, actions in ACTIONS.items()
        for action in actions
    ]
    with receiving() as made:
        for side, path in ((servers.stock, "/stock"), (servers.product, "/ours")):
            fields = {"name": "all", "url": made.url(path), "events": events, "secret": SECRET}
            assert side.send(post("webhooks", fields)).status == 200
        yield made


def model(name: str, *tags: dict[str, str], **fields: Any) -> Call:
    return post("registered-models/create", {"name": name, "tags": list(tags), **fields})


def version(name: str, *tags: dict[str, str], source: str = "s3://b/m", **fields: Any) -> Call:
    body = {"name": name, "source": source, "tags": list(tags), **fields}
    return post("model-versions/create", body)


def delete(path: str, **fields: Any) -> Call:
    return Call("DELETE", API + path, fields)


TAG = {"key": "a key", "value": "é ☃"}
TYPE = {"key": "_mlflow_prompt_type", "value": "text"}
TEXT = {"key": "mlflow.prompt.text", "value": "Hello {{name}}!\n"}
CALLS = [
    model("m", TAG, description="d"),
    model("plain"),
    model("m"),
    version("m", TAG, description="d", run_link="x"),
    version("m"),
    version("missing"),
    post("model-versions/create", {"name": "m", "source": "models:/m/1"}),
    post("registered-models/set-tag", {"name": "m", **TAG}),
    post("model-versions/set-tag", {"name": "m", "version": "1", **TAG}),
    post("model-versions/set-tag", {"name": "m", "version": "1", **TAG}),
    post("model-versions/set-tag", {"name": "m", "version": "1", "key": "b", "value": ""}),
    post("model-versions/set-tag", {"name": "m", "version": "9", **TAG}),
    delete("model-versions/delete-tag", name="m", version="1", key="b"),
    delete("registered-models/delete-tag", name="m", key="a key"),
    post("registered-models/alias", {"name": "m", "alias": "champion", "version": "1"}),
    post("registered-models/alias", {"name": "m", "alias": "champion", "version": "2"}),
    post("registered-models/alias", {"name": "m", "alias": "champion", "version": "2"}),
    delete("registered-models/alias", name="m", alias="champion"),
    post("registered-models/alias", {"name": "m", "alias": "left", "version": "2"}),
    delete("model-versions/delete", name="m", version="2"),
    Call("PATCH", API + "registered-models/update", {"name": "m", "description": "e"}),
    Call("PATCH", API + "model-versions/update", {"name": "m", "version": "1", "description": "e"}),
    post("registered-models/rename", {"name": "m", "new_name": "n"}),
    post("model-versions/set-tag", {"name": "n", "version": "1", **TAG}),
    post(
        "model-versions/transition-stage",
        {"name": "n", "version": "1", "stage": "Production", "archive_existing_versions": True},
    ),
    model("p", PROMPT, TYPE, TAG, description="d"),
    model("q", {**PROMPT, "value": "TRUE"}),
    version("p", PROMPT, TYPE, TEXT, TAG, source="dummy-source", description="d"),
    version("p", PROMPT, source="dummy-source"),
    version("p"),
    post("registered-models/set-tag", {"name": "p", **TAG}),
    delete("registered-models/delete-tag", name="p", key="a key"),
    post("model-versions/set-tag", {"name": "p", "version": "1", **TAG}),
    delete("model-versions/delete-tag", name="p", version="1", key="a key"),
    post("registered-models/alias", {"name": "p", "alias": "b", "version": "1"}),
    delete("registered-models/alias", name="p", alias="b"),
    delete("registered-models/delete-tag", name="p", key=PROMPT["key"]),
    post("registered-models/set-tag", {"name": "plain", **PROMPT}),
    delete("registered-models/delete", name="n"),
    model("last"),
]


def texts(deliveries: list[Delivery]) -> list[str]:
    """The bodies without their times, with the order of their fields. Neither server promises an
    order of deliveries."""
    bodies = [{**delivery.body, "timestamp": ""} for delivery in deliveries]
    for body in bodies:
        if isinstance(body["data"].get("tags"), dict):
            body["data"]["tags"] = dict(sorted(body["data"]["tags"].items()))
    return sorted(map(json.dumps, bodies))


def _is_told(deliveries: list[Delivery]) -> bool:
    """Whether the last of the calls was."""
    return any(delivery.body["data"].get("name") == "last" for delivery in deliveries)


def test_the_same_calls_are_told_the_same(servers: Pair, receiver: Receiver) -> None:
    for call in CALLS:
        replies = servers.stock.send(call), servers.product.send(call)
        assert replies[0].status == replies[1].status, call
    receiver.wait(lambda: _is_told(receiver.at("/stock")) and _is_told(receiver.at("/ours")))
    receiver.wait(lambda: len(receiver.at("/stock")) == len(receiver.at("/ours")))
    deliveries = receiver.settled()
    stock = [delivery for delivery in deliveries if delivery.path == "/stock"]
    ours = [delivery for delivery in deliveries if delivery.path == "/ours"]
    assert len(stock) > 20
    assert texts(ours) == texts(stock)
    made_by_client = {"user-agent", "accept", "accept-encoding", "connection", "host"}
    for theirs, mine in ((stock[0], delivery) for delivery in ours):
        assert set(mine.headers) - made_by_client == set(theirs.headers) - made_by_client
        for body in (mine.body, theirs.body):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", body["timestamp"])
        delivery_id = mine.headers["x-mlflow-delivery-id"]
        assert str(UUID(delivery_id)) == delivery_id
        timestamp = mine.headers["x-mlflow-timestamp"]
        signed = signature(SECRET, delivery_id, timestamp, mine.text)
        assert mine.headers["x-mlflow-signature"] == signed
    assert len({delivery.headers["x-mlflow-delivery-id"] for delivery in ours}) == len(ours)


def test_trying_is_answered_the_same(servers: Pair, receiver: Receiver) -> None:
    receiver.answers = {"/refusing": [401], "/flaky": [503, 200]}
    for path in ("/up", "/refusing", "/flaky"):
        fields = {
            "name": "t",
            "url": receiver.url(path),
            "events": [
                {"entity": "PROMPT_VERSION", "action": "CREATED"},
                {"entity": "MODEL_VERSION_ALIAS", "action": "DELETED"},
            ],
        }
        if path == "/flaky":
            receiver.answers[path] = [503, 200]
        servers.send(post("webhooks", fields, saves={"tried": "webhook.webhook_id"}))
        servers.send(post("webhooks/{{tried}}/test"))
        event = {"event": {"entity": "BUDGET_POLICY", "action": "EXCEEDED"}}
        servers.send(post("webhooks/{{tried}}/test", event))
        bodies = [{**delivery.body, "timestamp": ""} for delivery in receiver.at(path)]
        assert len({json.dumps(body) for body in bodies}) == 2
