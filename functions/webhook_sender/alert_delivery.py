"""Delivers the messages of alerts: to Slack, to webhooks, and to the deployment's topics of SNS,
which send mail."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mlcore import topics
from mlcore.entities.alerts import SLACK, SNS
from mlcore.repos import alerts
from mlcore.webhooks import alert_messages, delivery, delivery_message, destination_values
from mlcore.webhooks.delivery import DeliveryAnswer
from mlcore.webhooks.delivery_message import TOPIC_FIELD, DeliveryMessage
from mlcore.webhooks.environment import webhook_settings


def send(message: DeliveryMessage) -> DeliveryAnswer | None:
    """Makes one attempt to deliver a message of an alert to one destination. Returns the receiver's
    answer; None if the alert or its destination was deleted meanwhile.

    Raises:
        InvalidParameterValue: the URL is not allowed for webhooks.
        TemporarilyUnavailable: SNS did not take the message.
        urllib3.exceptions.HTTPError: no answer arrived.
    """
    alert = delivery_message.find_receiver(message, alerts.find, message.data["alert_id"])
    if alert is None:
        return None
    destination = next(
        (entry for entry in alert.destinations if entry.destination_id == message.webhook_id), None
    )
    if destination is None:
        return None
    if destination.kind == SNS:
        return _publish(message)
    address = destination_values.open_address(destination, alert.workspace)
    data = _with_address(message.data)
    if destination.kind == SLACK:
        text = alert_messages.slack_body(message.event.action, message.workspace, data)
        headers = {"Content-Type": "application/json"}
    else:
        text = delivery.body(message.event, message.time_ms, data, message.workspace)
        headers = delivery.headers(address.secret, message.delivery_id, text)
    return delivery.send(address.url, headers, text, webhook_settings().timeout_seconds)


def _publish(message: DeliveryMessage) -> DeliveryAnswer | None:
    """Publishes a message to the topic that it names; returns None and does nothing if the
    deployment no longer has the topic."""
    topic = message.data.get(TOPIC_FIELD, "")
    if topic not in topics.of_alerts():
        return None
    action, data = message.event.action, _with_address(message.data)
    topics.publish(
        topic,
        alert_messages.mail_subject(action, data),
        alert_messages.mail_text(action, message.workspace, data),
    )
    return DeliveryAnswer(200, "", 0.0)


def _with_address(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the data with the URL of the dashboards, if this deployment knows its own address."""
    base = os.environ.get("PUBLIC_URL") or os.environ.get("API_URL")
    return {**data, "dashboards": f"{base.rstrip('/')}/dashboards"} if base else data
