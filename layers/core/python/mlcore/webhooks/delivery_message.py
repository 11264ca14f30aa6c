"""The SQS message for sending one event to one webhook, without the webhook's secret and URL."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar
from uuid import NAMESPACE_URL, uuid5

from mlcore import queues
from mlcore.entities.webhooks import EventName
from mlcore.entities.workspaces import DEFAULT_WORKSPACE

T = TypeVar("T")

PLAIN_BYTES: Final = 64 * 1024
"""Longer messages are compressed: a prompt with its tags may exceed the size limit of the queue."""
TOPIC_FIELD: Final = "topic"
"""The field in the data of an alert's message with the topic to notify. Each topic gets a message
of its own, so that a retry after a failed one does not repeat the mail of the others."""


class DeliveryMessage(NamedTuple):
    workspace: str
    webhook_id: str
    delivery_id: str
    event: EventName
    time_ms: int
    data: Mapping[str, Any]


def find_receiver(
    message: DeliveryMessage, find: Callable[[str, str], T | None], receiver_id: str
) -> T | None:
    """Returns the webhook or alert to which a delivery belongs; None if it was deleted. It may have
    moved to the default workspace, with the workspace of the event, since the message was sent.

    Args:
        find: reads a webhook or an alert by workspace and id.
    """
    receiver = find(message.workspace, receiver_id)
    if receiver is None and message.workspace != DEFAULT_WORKSPACE:
        receiver = find(DEFAULT_WORKSPACE, receiver_id)
    return receiver


def delivery_id(event_id: str, webhook_id: str) -> str:
    """Returns the id of a delivery: a UUID made from the event and the webhook, so that a repeated
    queue message has the same id."""
    return str(uuid5(NAMESPACE_URL, f"mlflow-webhook:{event_id}:{webhook_id}"))


def text(message: DeliveryMessage) -> str:
    """Returns the message of a webhook's delivery as ASCII text for the SQS queue; compressed if it
    is long. If it is too long even so, its largest data, such as the tags, are left empty."""
    data = dict(message.data)
    encoded = _encoded(message)
    while len(encoded) > queues.MAX_MESSAGE_BYTES:
        largest = max(data, key=lambda name: len(json.dumps(data[name])))
        data[largest] = {} if isinstance(data[largest], dict) else ""
        encoded = _encoded(message._replace(data=data))
    return encoded


def _encoded(message: DeliveryMessage) -> str:
    text = json.dumps({**message._asdict(), "event": str(message.event)})
    if len(text) <= PLAIN_BYTES:
        return text
    return base64.b85encode(zlib.compress(text.encode())).decode()


def parse(text: str) -> DeliveryMessage:
    if not text.startswith('{"'):
        text = zlib.decompress(base64.b85decode(text)).decode()
    fields: dict[str, Any] = json.loads(text)
    fields["event"] = EventName(*fields["event"].split("."))
    return DeliveryMessage(**fields)
