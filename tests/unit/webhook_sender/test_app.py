from typing import Any

import pytest
from urllib3.exceptions import ConnectTimeoutError

from mlcore import queues
from mlcore.entities.webhooks import ACTIVE, DISABLED, EventName, Webhook
from mlcore.errors import TemporarilyUnavailable
from mlcore.repos import webhooks
from mlcore.webhooks import delivery, delivery_message
from mlcore.webhooks.delivery import DeliveryAnswer
from mlcore.webhooks.delivery_message import DeliveryMessage
from mlcore.webhooks.environment import webhook_settings
from webhook_sender import app

EVENT = EventName("prompt", "created")
HOOK = Webhook("h", "w", "n", "https://x", (EVENT,), ACTIVE, "", "", 0, 0)
WANTED = DeliveryMessage("w", "h", "d", EVENT, 1, {})


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The webhook that is found, what its receiver does, and what was put off by how long."""
    made: dict[str, Any] = {
        "webhook": HOOK,
        "answer": DeliveryAnswer(200, "", 0.0),
        "put off": [],
        "sent": 0,
    }

    def send(*_: Any) -> DeliveryAnswer:
        made["sent"] += 1
        if isinstance(made["answer"], Exception):
            raise made["answer"]
        return made["answer"]

    monkeypatch.setenv("WEBHOOK_QUEUE_URL", "queue")
    monkeypatch.delenv("WEBHOOK_BACKOFF_SECONDS", raising=False)
    webhook_settings.cache_clear()
    monkeypatch.setattr(webhooks, "find", lambda *_: made["webhook"])
    monkeypatch.setattr(delivery, "send", send)
    monkeypatch.setattr(queues, "postpone", lambda _, __, seconds: made["put off"].append(seconds))
    return made


def handled(attempt: int = 1) -> bool:
    record = {
        "messageId": "m",
        "receiptHandle": "r",
        "body": delivery_message.text(WANTED),
        "attributes": {"ApproximateReceiveCount": str(attempt)},
    }
    answer = app.handler({"Records": [record]}, None)
    assert answer["batchItemFailures"] in ([], [{"itemIdentifier": "m"}])
    return answer["batchItemFailures"] == []


@pytest.mark.parametrize(
    "webhook", [None, HOOK._replace(status=DISABLED), HOOK._replace(events=())]
)
def test_who_wants_it_no_more_gets_nothing(world: dict[str, Any], webhook: Webhook | None) -> None:
    world["webhook"] = webhook
    assert handled()
    assert world["sent"] == 0


@pytest.mark.parametrize("status", [200, 204, 302, 400, 401, 404, 410])
def test_the_last_word_of_a_receiver(world: dict[str, Any], status: int) -> None:
    world["answer"] = DeliveryAnswer(status, "", 0.0)
    assert handled()
    assert world["sent"] == 1


@pytest.mark.parametrize(
    "answer",
    [
        *(DeliveryAnswer(status, "", 0.0) for status in (429, 500, 502, 503, 504)),
        ConnectTimeoutError("x"),
        ConnectionResetError(),
        TemporarilyUnavailable("no key now"),
    ],
)
def test_what_is_tried_again_later_each_time(world: dict[str, Any], answer: Any) -> None:
    world["answer"] = answer
    assert [handled(attempt) for attempt in (1, 2, 3, 7, 8)] == [False] * 5
    assert world["put off"] == [1, 2, 4, 60, 60]


def test_an_error_of_ours_is_the_functions(world: dict[str, Any]) -> None:
    """Lambda counts it, and the message comes again all the same."""
    world["answer"] = RuntimeError("unforeseen")
    for attempt in (1, 2, 7):
        with pytest.raises(app.NothingHandled):
            handled(attempt)
    assert world["put off"] == [1, 2, 60]


def test_a_receiver_may_ask_for_time(world: dict[str, Any]) -> None:
    world["answer"] = DeliveryAnswer(503, "", 30.0)
    assert not handled()
    world["answer"] = DeliveryAnswer(429, "", 1e5)
    assert not handled(3)
    assert world["put off"] == [30, 900]
