"""Webhooks of the local runner from the call to the receiver, with receivers that fail."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError

import pytest

from mlcore.webhooks.delivery import signature
from tests.receiver import Receiver, receiving
from tests.servers import Server, start_product, stopped

pytestmark = pytest.mark.e2e

SECRET = "only you and me"
ATTEMPTS = 8
"""As many as template.yaml says."""


class Product(NamedTuple):
    server: Server
    folder: Path

    def call(self, method: str, path: str, **fields: Any) -> Any:
        request = urllib.request.Request(
            f"{self.server.url}/api/2.0/mlflow/{path}",
            method=method,
            data=json.dumps(fields).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def webhook(self, url: str, *events: str, **fields: Any) -> str:
        named = [name.upper().split(".") for name in events]
        made = self.call(
            "POST",
            "webhooks",
            name="hook",
            url=url,
            events=[{"entity": entity, "action": action} for entity, action in named],
            **fields,
        )
        return made["webhook"]["webhook_id"]

    def queued(self, queue: str) -> list[dict[str, Any]]:
        """What is in a queue; a message that is being delivered still is."""
        with contextlib.closing(sqlite3.connect(self.folder / "queues.sqlite")) as database:
            rows = database.execute("SELECT body FROM messages WHERE queue = ?", (queue,))
            return [json.loads(body) for (body,) in rows]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("product")
    data = folder / "data"
    started = start_product(folder, "--data", str(data), WEBHOOK_BACKOFF_SECONDS="0")
    with stopped(started) as server:
        yield Product(server, data)


@pytest.fixture
def receiver(product: Product) -> Iterator[Receiver]:
    with receiving() as made:
        yield made
        for webhook in product.call("GET", "webhooks").get("webhooks", []):
            product.call("DELETE", f"webhooks/{webhook['webhook_id']}")


def test_a_receiver_that_fails_twice_gets_the_event_the_third_time(
    product: Product, receiver: Receiver
) -> None:
    receiver.answers = {"/flaky": [503, 500, 200]}
    product.webhook(receiver.url("/flaky"), "registered_model.created", secret=SECRET)
    product.call(
        "POST", "registered-models/create", name="flaky", tags=[{"key": "k", "value": "é"}]
    )
    first, second, third = receiver.wait(lambda: len(got := receiver.at("/flaky")) == 3 and got)
    assert first.text == second.text == third.text
    [delivery_id] = {
        delivery.headers["x-mlflow-delivery-id"] for delivery in (first, second, third)
    }
    for delivery in (first, second, third):
        timestamp = delivery.headers["x-mlflow-timestamp"]
        assert abs(time.time() - int(timestamp)) < 60
        assert delivery.headers["content-type"] == "application/json"
        assert delivery.headers["x-mlflow-signature"] == signature(
            SECRET, delivery_id, timestamp, delivery.text
        )
    assert third.body["data"] == {"name": "flaky", "tags": {"k": "é"}, "description": ""}
    receiver.wait(lambda: not product.queued("WebhookQueue"))
    assert len(receiver.at("/flaky")) == 3


def test_a_receiver_that_is_down_for_good_holds_up_nobody(
    product: Product, receiver: Receiver
) -> None:
    receiver.answers = {"/down": [500]}
    down = product.webhook(receiver.url("/down"), "registered_model.created", secret=SECRET)
    gone = product.webhook("http://127.0.0.1:9/", "registered_model.created")
    product.webhook(receiver.url("/up"), "registered_model.created")
    product.call("POST", "registered-models/create", name="down")
    receiver.wait(lambda: receiver.at("/up"))
    given_up = receiver.wait(
        lambda: len(queued := product.queued("WebhookFailureQueue")) == 2 and queued
    )
    assert {message["webhook_id"] for message in given_up} == {down, gone}
    assert SECRET not in json.dumps(given_up)
    assert len(receiver.at("/down")) == ATTEMPTS
    assert len(receiver.at("/up")) == 1


def test_who_is_disabled_deleted_or_late_gets_nothing(product: Product, receiver: Receiver) -> None:
    event = "registered_model.created"
    product.call("POST", "registered-models/create", name="before")
    product.webhook(receiver.url("/disabled"), event, status="DISABLED")
    deleted = product.webhook(receiver.url("/deleted"), event)
    product.call("DELETE", f"webhooks/{deleted}")
    product.webhook(receiver.url("/other"), "prompt.created")
    product.webhook(receiver.url("/late"), event)
    product.call("POST", "registered-models/create", name="after")
    receiver.wait(lambda: receiver.at("/late") and not product.queued("WebhookQueue"))
    assert [delivery.body["data"]["name"] for delivery in receiver.deliveries] == ["after"]


def test_a_rename_and_a_deletion_are_no_events(product: Product, receiver: Receiver) -> None:
    product.webhook(
        receiver.url("/"),
        "registered_model.created",
        "model_version.created",
        "model_version_alias.deleted",
        "model_version_tag.set",
    )
    product.call("POST", "registered-models/create", name="old")
    product.call("POST", "model-versions/create", name="old", source="s3://b/m")
    product.call("POST", "registered-models/alias", name="old", alias="a", version="1")
    product.call("POST", "registered-models/rename", name="old", new_name="new")
    product.call("PATCH", "model-versions/update", name="new", version="1", description="d")
    product.call("DELETE", "model-versions/delete", name="new", version="1")
    product.call("POST", "model-versions/create", name="new", source="s3://b/m")
    product.call("POST", "model-versions/set-tag", name="new", version="2", key="k", value="v")
    product.call("DELETE", "registered-models/delete", name="new")
    product.call("POST", "registered-models/create", name="last")
    receiver.wait(lambda: any(got.body["data"]["name"] == "last" for got in receiver.deliveries))
    receiver.wait(lambda: not product.queued("WebhookQueue"))
    assert sorted((got.event, got.body["data"]["name"]) for got in receiver.deliveries) == [
        ("model_version.created", "new"),
        ("model_version.created", "old"),
        ("model_version_tag.set", "new"),
        ("registered_model.created", "last"),
        ("registered_model.created", "old"),
    ]


def test_trying_a_webhook(product: Product, receiver: Receiver) -> None:
    receiver.answers = {"/flaky": [500, 200], "/refusing": [401], "/moved": [302], "/down": [500]}
    receiver.headers = {"/moved": {"Location": receiver.url("/elsewhere")}}

    def tried(url: str, **fields: Any) -> Any:
        webhook_id = product.webhook(url, "registered_model.created", secret=SECRET)
        return product.call("POST", f"webhooks/{webhook_id}/test", **fields)["result"]

    answered = {"success": True, "response_status": 200, "response_body": "received"}
    assert tried(receiver.url("/up")) == answered
    assert receiver.at("/up")[0].body["data"]["name"] == "example_model"
    event = {"entity": "PROMPT_TAG", "action": "SET"}
    assert tried(receiver.url("/other"), event=event) == answered
    assert receiver.at("/other")[0].event == "prompt_tag.set"
    assert tried(receiver.url("/flaky")) == answered
    refused = {"success": False, "response_status": 401, "response_body": "received"}
    assert tried(receiver.url("/refusing")) == refused
    assert tried(receiver.url("/down"))["response_status"] == 500
    assert len(receiver.at("/down")) == 4
    assert tried(receiver.url("/moved"))["success"] is False
    assert receiver.at("/elsewhere") == []
    unreachable = tried("http://127.0.0.1:9/")
    assert unreachable["success"] is False
    assert "Failed to test webhook" in unreachable["error_message"]


def test_only_this_machine_is_reached_by_plain_http(product: Product) -> None:
    for url in ("http://10.0.0.1/", "http://169.254.169.254/", "https://127.0.0.1/"):
        with pytest.raises(HTTPError) as refused:
            product.webhook(url, "prompt.created")
        with refused.value:
            assert refused.value.code == 400


def test_secrets_are_sealed_and_told_to_nobody(product: Product, receiver: Receiver) -> None:
    product.webhook(receiver.url("/"), "prompt.created", secret=SECRET)
    assert SECRET not in json.dumps(product.call("GET", "webhooks"))
    key = product.folder / "secrets.key"
    assert key.stat().st_mode & 0o777 == 0o600
    files = [path for path in product.folder.iterdir() if path.is_file()]
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in product.server.log.read_text()
