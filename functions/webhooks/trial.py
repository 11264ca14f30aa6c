"""Tries a webhook: sends a sample delivery while the caller waits, and tells how it went."""

from __future__ import annotations

import time
from typing import Any, Final
from uuid import uuid4

from urllib3.exceptions import HTTPError

from mlcore.entities.webhooks import EventName, Webhook
from mlcore.errors import MlflowError
from mlcore.http import Request
from mlcore.ids import now_ms
from mlcore.webhooks import delivery, examples, sealing
from mlcore.webhooks.delivery import Answer
from mlcore.webhooks.environment import webhook_settings
from webhooks import messages as m
from webhooks import service

ATTEMPTS: Final = 4
PATIENCE_SECONDS: Final = 24.0
"""An API function has 29 seconds."""


def test_webhook(message: m.TestWebhook, request: Request) -> dict[str, Any]:
    """Any event may be tried, also one that the webhook does not ask for."""
    event = service.event_name(message.event) if message.event else None
    webhook = service.get(message.webhook_id, request)
    try:
        answer = _sent(webhook, event or webhook.events[0], request)
    except (MlflowError, HTTPError, OSError) as error:
        return {"result": {"success": False, "error_message": f"Failed to test webhook: {error!r}"}}
    return {
        "result": {
            "success": answer.status < 300,
            "response_status": answer.status,
            "response_body": answer.text,
        }
    }


def _sent(webhook: Webhook, event: EventName, request: Request) -> Answer:
    """The first answer that is not worth another attempt, or the last one there was time for.

    As MLflow's server does it, all attempts are of one delivery, with one signature.
    """
    settings = webhook_settings()
    secret = sealing.opened(webhook)
    text = delivery.body(event, now_ms(), examples.example(event), request.workspace)
    given = delivery.headers(secret, str(uuid4()), text)
    deadline = time.monotonic() + PATIENCE_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        pause = settings.backoff_seconds * 2 ** (attempt - 1)
        left = deadline - time.monotonic()
        try:
            answer = delivery.send(webhook.url, given, text, min(settings.timeout_seconds, left))
            if answer.status not in delivery.REPEATED:
                return answer
            pause = max(pause, answer.retry_after)
            if attempt == ATTEMPTS or time.monotonic() + pause + 1 > deadline:
                return answer
        except (HTTPError, OSError):
            if attempt == ATTEMPTS or time.monotonic() + pause + 1 > deadline:
                raise
        time.sleep(pause)
    raise AssertionError("the last attempt answers or raises")
