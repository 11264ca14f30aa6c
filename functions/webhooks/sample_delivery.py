"""Tests a webhook: sends a sample delivery while the caller waits, and answers with the result."""

from __future__ import annotations

import time
from typing import Any, Final
from uuid import uuid4

from urllib3.exceptions import HTTPError

from mlcore.entities.webhooks import EventName, Webhook
from mlcore.errors import MlflowError
from mlcore.http import Request
from mlcore.ids import now_ms
from mlcore.webhooks import delivery, examples, secret_values
from mlcore.webhooks.delivery import DeliveryAnswer
from mlcore.webhooks.environment import webhook_settings
from webhooks import messages as m
from webhooks import service

ATTEMPTS: Final = 4
TOTAL_SECONDS: Final = 24.0
"""Seconds that all attempts together may take; a function of the API has 29."""


def test_webhook(message: m.TestWebhook, request: Request) -> dict[str, Any]:
    """Sends a sample of an event to the webhook and returns the receiver's response. The request
    may name any event, even one to which the webhook is not subscribed; the default is the
    webhook's first event."""
    event = service.event_name(message.event) if message.event else None
    webhook = service.get(message.webhook_id, request)
    try:
        answer = _send(webhook, event or webhook.events[0], request)
    except (MlflowError, HTTPError, OSError) as error:
        return {"result": {"success": False, "error_message": f"Failed to test webhook: {error!r}"}}
    return {
        "result": {
            "success": answer.status < 300,
            "response_status": answer.status,
            "response_body": answer.text,
        }
    }


def _send(webhook: Webhook, event: EventName, request: Request) -> DeliveryAnswer:
    """Returns the receiver's first answer that is not retried, or the last for which there was
    time.

    As on MLflow's server, all attempts send the same delivery with the same signature.
    """
    settings = webhook_settings()
    secret = secret_values.open_secret(webhook)
    text = delivery.body(event, now_ms(), examples.example(event), request.workspace)
    headers = delivery.headers(secret, str(uuid4()), text)
    deadline = time.monotonic() + TOTAL_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        pause = settings.backoff_seconds * 2 ** (attempt - 1)
        remaining = deadline - time.monotonic()
        try:
            answer = delivery.send(
                webhook.url, headers, text, min(settings.timeout_seconds, remaining)
            )
            if answer.status not in delivery.RETRIED_STATUSES:
                return answer
            pause = max(pause, answer.retry_after)
            if attempt == ATTEMPTS or time.monotonic() + pause + 1 > deadline:
                return answer
        except (HTTPError, OSError):
            if attempt == ATTEMPTS or time.monotonic() + pause + 1 > deadline:
                raise
        time.sleep(pause)
    raise AssertionError("the last attempt answers or raises")
