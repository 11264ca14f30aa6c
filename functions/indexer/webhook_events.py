"""Sends the events of registry writes and of exceeded budgets to the queue of webhook deliveries,
one message for each webhook that subscribes to the event; and the events of alerts, one message for
each destination of the alert, for the destination ``sns`` one for each SNS topic of the deployment.

The indexer does this because a DynamoDB stream can have few consumers. It does not wait for
receivers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore import queues, reserved_tags, topics
from mlcore.db.expression import Raw
from mlcore.db.table import key_of_item
from mlcore.entities.alerts import EVENT_ENTITY, SNS
from mlcore.entities.webhooks import ACTIVE, Webhook
from mlcore.models.base import Item
from mlcore.models.registry import ModelVersion, RegisteredModel
from mlcore.repos import alerts, document, webhooks
from mlcore.repos.registry import model_versions, registered_models
from mlcore.webhooks import announcement, delivery_message
from mlcore.webhooks.announcement import Announcement
from mlcore.webhooks.delivery_message import DeliveryMessage

QUEUE: Final = "WEBHOOK_QUEUE_URL"
"""The environment variable with the queue's URL."""


def announces(record: Mapping[str, Any]) -> bool:
    """Whether a stream record shows a write that added an event for webhooks or alerts."""
    new, old = record.get("NewImage") or {}, record.get("OldImage") or {}
    event = new.get(announcement.ATTRIBUTE)
    return event is not None and event != old.get(announcement.ATTRIBUTE)


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records with events for webhooks or of alerts: one Query for the webhooks of
    each workspace, then a message to the webhook queue for each delivery."""
    events = [
        (event, image)
        for record in records
        if (image := record["NewImage"])
        for event in announcement.parse_all(image[announcement.ATTRIBUTE]["S"])
    ]
    listening = {
        workspace: webhooks.of_workspace(workspace)
        for workspace in {event.workspace for event, _ in events if not _is_of_alert(event)}
    }
    messages = [
        queues.QueueMessage(delivery_message.text(delivery), delivery.webhook_id)
        for event, image in events
        for delivery in (
            alert_deliveries(event, image)
            if _is_of_alert(event)
            else deliveries(event, image, listening[event.workspace])
        )
    ]
    if messages:
        queues.send(os.environ[QUEUE], messages)


def deliveries(
    event: Announcement, image: Raw, listening: Sequence[Webhook]
) -> list[DeliveryMessage]:
    """Returns the delivery messages of an event: one for each webhook that was created before the
    event, is active now, and subscribes to the event now."""
    subscribed = [
        webhook
        for webhook in listening
        if webhook.status == ACTIVE
        and event.event in webhook.events
        and webhook.creation_time <= event.time_ms
    ]
    if not subscribed:
        return []
    event_data = data(event, image)
    return [
        DeliveryMessage(
            workspace=event.workspace,
            webhook_id=webhook.webhook_id,
            delivery_id=delivery_message.delivery_id(event.event_id, webhook.webhook_id),
            event=event.event,
            time_ms=event.time_ms,
            data=event_data,
        )
        for webhook in subscribed
    ]


def alert_deliveries(event: Announcement, image: Raw) -> list[DeliveryMessage]:
    """Returns the delivery messages of an alert's event: one for each destination that the alert
    had when the event was written; for the destination ``sns`` one for each of its topics."""
    event_data = event.data or {}
    receivers: list[tuple[str, str, Mapping[str, Any]]] = []
    for destination in alerts.of_item(image).destinations:
        destination_id = destination.destination_id
        if destination.kind != SNS:
            receivers.append((destination_id, destination_id, event_data))
            continue
        for topic in topics.of_alerts():
            named = {**event_data, delivery_message.TOPIC_FIELD: topic}
            receivers.append((destination_id, f"{destination_id}:{topic}", named))
    return [
        DeliveryMessage(
            workspace=event.workspace,
            webhook_id=destination_id,
            delivery_id=delivery_message.delivery_id(event.event_id, receiver),
            event=event.event,
            time_ms=event.time_ms,
            data=receiver_data,
        )
        for destination_id, receiver, receiver_data in receivers
    ]


def _is_of_alert(event: Announcement) -> bool:
    return event.event.entity == EVENT_ENTITY


def data(event: Announcement, image: Raw) -> dict[str, Any]:
    """Returns the ``data`` of a webhook's event as MLflow's server sends it, with the fields in the
    same order.

    Args:
        image: the item that was written, from the stream record.
    """
    if event.data is not None:
        return dict(event.data)
    entity, action = event.event
    event_data: dict[str, Any] = {"name": event.name}
    if event.alias is not None:
        event_data["alias"] = event.alias
    if event.version is not None:
        event_data["version"] = str(event.version)
    if event.key is not None:
        event_data["key"] = event.key
        if action == "set":
            event_data["value"] = _tags(image).get(event.key, "")
    if action != "created" or event.alias is not None:
        return event_data
    tags = _tags(image)
    if entity == "model_version":
        version = ModelVersion.of(image)
        event_data["source"], event_data["run_id"] = version.source, version.run_id or None
    elif entity == "prompt_version":
        event_data["template"] = tags.pop(reserved_tags.PROMPT_TEXT, None)
    if entity.startswith("prompt"):
        tags.pop(reserved_tags.IS_PROMPT, None)
        tags.pop(reserved_tags.PROMPT_TYPE, None)
    event_data["tags"] = tags
    if entity.endswith("version"):
        event_data["description"] = ModelVersion.of(image).description or None
    else:
        event_data["description"] = RegisteredModel.of(image).description
    return event_data


def _tags(image: Raw) -> dict[str, str]:
    """Returns the tags of a model or version: those in the image, and the current ones outside
    it."""
    if Item.of(image).type == RegisteredModel.pattern.name:
        read = document.load(image, (registered_models.home_of(image),), registered_models.MAPS)
    else:
        owner = (key_of_item(image).pk, str(ModelVersion.of(image).model_version))
        read = document.load(image, owner, model_versions.MAPS)
    return read.texts("tags")
