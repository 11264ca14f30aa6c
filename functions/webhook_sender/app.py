"""Makes the deliveries that wait in the queue; a delivery that fails comes again, later each time.

The queue counts the attempts and gives up after as many as it is told; what was given up waits in
its dead-letter queue.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from urllib3.exceptions import HTTPError

from mlcore import queues
from mlcore.entities.webhooks import ACTIVE
from mlcore.errors import InvalidParameterValue, MlflowError
from mlcore.observability import logger
from mlcore.repos import webhooks
from mlcore.webhooks import delivery, message, sealing
from mlcore.webhooks.environment import webhook_settings
from mlcore.webhooks.message import DeliveryMessage

MAX_PAUSE_SECONDS: Final = 60.0
MAX_RETRY_AFTER_SECONDS: Final = 900.0


class NotDelivered(Exception):
    """The receiver may take it another time, not sooner than after so many seconds."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class NothingHandled(Exception):
    """All messages met an error that is not their receivers'; the log says which."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """An SQS event in; the ids of the messages to come again out.

    Raises:
        NothingHandled: all shall come again, which is counted among the function's errors.
    """
    broken: list[str] = []
    failed = [record for record in event["Records"] if not _handled(record, broken)]
    if len(broken) == len(event["Records"]):
        raise NothingHandled(f"{len(broken)} messages")
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in failed]}


def _handled(record: Mapping[str, Any], broken: list[str]) -> bool:
    """``broken`` takes the ids of messages whose failure is no receiver's."""
    attempt = int(record["attributes"]["ApproximateReceiveCount"])
    wanted = message.parse(record["body"])
    about = {
        "webhook_id": wanted.webhook_id,
        "delivery_id": wanted.delivery_id,
        "event": str(wanted.event),
        "attempt": attempt,
    }
    retry_after = 0.0
    try:
        outcome = deliver(wanted)
    except NotDelivered as failure:
        retry_after = failure.retry_after
        logger.warning("webhook not delivered", extra={**about, "reason": str(failure)})
    except Exception:
        logger.exception("webhook not delivered", extra=about)
        broken.append(record["messageId"])
    else:
        logger.info(outcome, extra=about)
        return True
    _put_off(record["receiptHandle"], pause(attempt, retry_after))
    return False


def deliver(message: DeliveryMessage) -> str:
    """One attempt; says how it ended, if it did.

    Raises:
        NotDelivered: another attempt may go better.
    """
    webhook = webhooks.find(message.workspace, message.webhook_id)
    if webhook is None or webhook.status != ACTIVE or message.event not in webhook.events:
        return "webhook wants it no more"
    text = delivery.body(message.event, message.time_ms, message.data, message.workspace)
    try:
        headers = delivery.headers(sealing.opened(webhook), message.delivery_id, text)
        answer = delivery.send(webhook.url, headers, text, webhook_settings().timeout_seconds)
    except (MlflowError, HTTPError, OSError) as error:
        raise NotDelivered(_reason(error)) from error
    if answer.status in delivery.REPEATED:
        raise NotDelivered(f"status {answer.status}", answer.retry_after)
    return "webhook delivered" if answer.status < 300 else "webhook refused by its receiver"


def pause(attempt: int, retry_after: float) -> float:
    """Seconds between an attempt, counted from one, and the next."""
    doubled = webhook_settings().backoff_seconds * 2.0 ** min(attempt - 1, 16)
    return max(min(doubled, MAX_PAUSE_SECONDS), min(retry_after, MAX_RETRY_AFTER_SECONDS))


def _put_off(receipt_handle: str, seconds: float) -> None:
    try:
        queues.postpone(os.environ["WEBHOOK_QUEUE_URL"], receipt_handle, seconds)
    except MlflowError:
        # Then it comes again when the queue's own timeout has passed.
        logger.warning("a message could not be put off")


def _reason(error: Exception) -> str:
    """What may be logged: texts of exceptions may hold the URL, and a URL may hold a password."""
    refused = isinstance(error, InvalidParameterValue)
    return "its address is not allowed" if refused else type(error).__name__
