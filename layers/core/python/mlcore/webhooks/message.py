"""The message that asks for one delivery to one webhook. It holds no secret and no URL."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from mlcore.entities.webhooks import EventName

PLAIN_BYTES: Final = 64 * 1024
"""A longer text is compressed: a prompt with its tags may be larger than a queue takes."""


class DeliveryMessage(NamedTuple):
    workspace: str
    webhook_id: str
    delivery_id: str
    event: EventName
    time_ms: int
    data: Mapping[str, Any]


def delivery_id(event_id: str, webhook_id: str) -> str:
    """A UUID that is the same whenever the same event is told to the same webhook."""
    return str(uuid5(NAMESPACE_URL, f"mlflow-webhook:{event_id}:{webhook_id}"))


def text(message: DeliveryMessage) -> str:
    """ASCII text."""
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
