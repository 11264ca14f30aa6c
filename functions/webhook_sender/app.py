"""Sends the deliveries in the SQS webhook queue to webhooks and to the destinations of alerts. A
delivery that failed, but may succeed later, is retried with a growing delay.

The queue counts the attempts. After its configured maximum it moves the message to its dead-letter
queue.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from urllib3.exceptions import HTTPError

from mlcore import queues
from mlcore.entities.alerts import EVENT_ENTITY
from mlcore.entities.webhooks import ACTIVE
from mlcore.errors import InvalidParameterValue, MlflowError
from mlcore.observability import logger
from mlcore.repos import webhooks
from mlcore.webhooks import delivery, delivery_message, secret_values
from mlcore.webhooks.delivery import DeliveryAnswer
from mlcore.webhooks.delivery_message import DeliveryMessage
from mlcore.webhooks.environment import webhook_settings
from webhook_sender import alert_delivery

MAX_PAUSE_SECONDS: Final = 60.0
MAX_RETRY_AFTER_SECONDS: Final = 900.0


class NotDelivered(Exception):
    """Raised if a delivery to a webhook or to a destination of an alert failed, but a retry may
    succeed.

    ``retry_after`` is the minimum number of seconds before the retry.
    """

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class NothingHandled(Exception):
    """Raised if all messages of the call (each is one delivery to a webhook or an alert's
    destination) failed because of an unexpected error of this function, not of the receiver; the
    log has the errors."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Handles an SQS event with webhook and alert deliveries. Returns the ids of messages to retry.

    Raises:
        NothingHandled: every message failed because of an error of this function. All are retried,
            and the function's error metric counts this.
    """
    unexpected_failures: list[str] = []
    failed = [record for record in event["Records"] if not _handled(record, unexpected_failures)]
    if len(unexpected_failures) == len(event["Records"]):
        raise NothingHandled(f"{len(unexpected_failures)} messages")
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}


def _handled(record: Mapping[str, Any], unexpected_failures: list[str]) -> bool:
    """Tries one delivery. Returns False if it is to be retried.

    Args:
        unexpected_failures: gets the ids of messages that fail for reasons other than their
            receiver.
    """
    attempt = int(record["attributes"]["ApproximateReceiveCount"])
    message = delivery_message.parse(record["body"])
    log_fields = {
        "webhook_id": message.webhook_id,
        "delivery_id": message.delivery_id,
        "event": str(message.event),
        "attempt": attempt,
    }
    retry_after = 0.0
    try:
        outcome = deliver(message)
    except NotDelivered as failure:
        retry_after = failure.retry_after
        logger.warning("webhook not delivered", extra={**log_fields, "reason": str(failure)})
    except Exception:
        logger.exception("webhook not delivered", extra=log_fields)
        unexpected_failures.append(record["messageId"])
    else:
        logger.info(outcome, extra=log_fields)
        return True
    _postpone(record["receiptHandle"], pause(attempt, retry_after))
    return False


def deliver(message: DeliveryMessage) -> str:
    """Makes one attempt to deliver a message to its webhook or alert destination. Returns the
    outcome for the log if no retry is needed. Raises NotDelivered if a retry may succeed."""
    is_of_alert = message.event.entity == EVENT_ENTITY
    try:
        answer = alert_delivery.send(message) if is_of_alert else _send(message)
    except (MlflowError, HTTPError, OSError) as error:
        raise NotDelivered(_reason(error)) from error
    if answer is None:
        return "webhook no longer subscribed"
    if answer.status in delivery.RETRIED_STATUSES:
        raise NotDelivered(f"status {answer.status}", answer.retry_after)
    return "webhook delivered" if answer.status < 300 else "webhook refused by its receiver"


def _send(message: DeliveryMessage) -> DeliveryAnswer | None:
    """Makes one attempt to deliver an event to a webhook. Returns the receiver's answer; None if
    the webhook is no longer subscribed."""
    webhook = delivery_message.find_receiver(message, webhooks.find, message.webhook_id)
    if webhook is None or webhook.status != ACTIVE or message.event not in webhook.events:
        return None
    text = delivery.body(message.event, message.time_ms, message.data, message.workspace)
    headers = delivery.headers(secret_values.open_secret(webhook), message.delivery_id, text)
    return delivery.send(webhook.url, headers, text, webhook_settings().timeout_seconds)


def pause(attempt: int, retry_after: float) -> float:
    """Returns how many seconds to wait after a failed attempt to deliver a webhook before the next.

    Args:
        attempt: the number of the failed attempt, from one.
        retry_after: the seconds in the receiver's ``Retry-After``; 0 if it sent none.
    """
    doubled = webhook_settings().backoff_seconds * 2.0 ** min(attempt - 1, 16)
    return max(min(doubled, MAX_PAUSE_SECONDS), min(retry_after, MAX_RETRY_AFTER_SECONDS))


def _postpone(receipt_handle: str, seconds: float) -> None:
    try:
        queues.postpone(os.environ["WEBHOOK_QUEUE_URL"], receipt_handle, seconds)
    except MlflowError:
        # The message is then retried after the queue's visibility timeout.
        logger.warning("a message could not be postponed")


def _reason(error: Exception) -> str:
    """Returns a reason that is safe to log. The text of an exception is not: it may contain the
    URL, and a URL may contain a password."""
    refused = isinstance(error, InvalidParameterValue)
    return "its address is not allowed" if refused else type(error).__name__
