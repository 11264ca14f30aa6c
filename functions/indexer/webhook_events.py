"""Hands what writes announce to the queue of deliveries, one message for each webhook that asks.

The indexer is the only consumer of the stream that there is room for; it waits for no receiver.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore import queues
from mlcore.db.expression import Raw
from mlcore.db.table import key_in
from mlcore.entities.webhooks import ACTIVE, Webhook
from mlcore.models.base import Item
from mlcore.models.registry import ModelVersion, RegisteredModel
from mlcore.prompts import IS_PROMPT
from mlcore.repos import document, webhooks
from mlcore.repos.registry import model_versions, registered_models
from mlcore.webhooks import announcement, message
from mlcore.webhooks.announcement import PROMPT_TEXT, PROMPT_TYPE, Announcement
from mlcore.webhooks.message import DeliveryMessage

QUEUE: Final = "WEBHOOK_QUEUE_URL"
"""Environment."""


def announces(record: Mapping[str, Any]) -> bool:
    """Whether the record shows a write that announces something for the first time."""
    new, old = record.get("NewImage") or {}, record.get("OldImage") or {}
    said = new.get(announcement.ATTRIBUTE)
    return said is not None and said != old.get(announcement.ATTRIBUTE)


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """One Query for each workspace in which something happened, then the messages."""
    announced = [
        (said, image)
        for record in records
        if (image := record["NewImage"])
        for said in announcement.parse_all(image[announcement.ATTRIBUTE]["S"])
    ]
    listening = {
        workspace: webhooks.of_workspace(workspace)
        for workspace in {said.workspace for said, _ in announced}
    }
    messages = [
        queues.Message(message.text(wanted), wanted.webhook_id)
        for said, image in announced
        for wanted in deliveries(said, image, listening[said.workspace])
    ]
    if messages:
        queues.send(os.environ[QUEUE], messages)


def deliveries(
    said: Announcement, image: Raw, listening: Sequence[Webhook]
) -> list[DeliveryMessage]:
    """One for each active webhook that was there and asked for the event when it happened."""
    asking = [
        webhook
        for webhook in listening
        if webhook.status == ACTIVE
        and said.event in webhook.events
        and webhook.creation_time <= said.time_ms
    ]
    if not asking:
        return []
    told = data(said, image)
    return [
        DeliveryMessage(
            workspace=said.workspace,
            webhook_id=webhook.webhook_id,
            delivery_id=message.delivery_id(said.event_id, webhook.webhook_id),
            event=said.event,
            time_ms=said.time_ms,
            data=told,
        )
        for webhook in asking
    ]


def data(said: Announcement, image: Raw) -> dict[str, Any]:
    """What MLflow's server tells of the event, in its order."""
    entity, action = said.event
    told: dict[str, Any] = {"name": said.name}
    if said.alias is not None:
        told["alias"] = said.alias
    if said.version is not None:
        told["version"] = str(said.version)
    if said.key is not None:
        told["key"] = said.key
        if action == "set":
            told["value"] = _tags(image).get(said.key, "")
    if action != "created" or said.alias is not None:
        return told
    tags = _tags(image)
    if entity == "model_version":
        version = ModelVersion.of(image)
        told["source"], told["run_id"] = version.source, version.run_id or None
    elif entity == "prompt_version":
        told["template"] = tags.pop(PROMPT_TEXT, None)
    if entity.startswith("prompt"):
        tags.pop(IS_PROMPT, None)
        tags.pop(PROMPT_TYPE, None)
    told["tags"] = tags
    if entity.endswith("version"):
        told["description"] = ModelVersion.of(image).description or None
    else:
        told["description"] = RegisteredModel.of(image).description
    return told


def _tags(image: Raw) -> dict[str, str]:
    """Those of the image, and as they are now those that it had no room for."""
    if Item.of(image).type == RegisteredModel.pattern.name:
        read = document.load(image, (registered_models.home_of(image),), registered_models.MAPS)
    else:
        owner = (key_in(image).pk, str(ModelVersion.of(image).model_version))
        read = document.load(image, owner, model_versions.MAPS)
    return read.texts("tags")
