"""Creates, reads, lists, changes and deletes webhooks: their names, URLs, events and secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from mlcore import errors, ids, paging
from mlcore.entities.webhooks import ACTIONS, ACTIVE, EventName, Webhook
from mlcore.http import Request
from mlcore.limits.webhooks import check_distinct_events, check_name
from mlcore.repos import webhooks
from mlcore.responses import webhooks as responses
from mlcore.webhooks import addresses, secret_values
from webhooks import messages as m

MAX_RESULTS: Final = 1000


def create_webhook(message: m.CreateWebhook, request: Request) -> dict[str, Any]:
    events = event_names(message.events)
    check_name(message.name)
    addresses.check_url(message.url)
    if not events:
        raise errors.InvalidParameterValue(
            "Webhook events must be a non-empty list of WebhookEvent objects: []."
        )
    check_distinct_events(events)
    webhook_id = str(uuid4())
    now = ids.now_ms()
    webhook = Webhook(
        webhook_id=webhook_id,
        workspace=request.workspace,
        name=message.name,
        url=message.url,
        events=events,
        status=message.status or ACTIVE,
        description=message.description,
        sealed_secret=secret_values.seal(message.secret, request.workspace, webhook_id),
        creation_time=now,
        last_update_time=now,
    )
    webhooks.put(webhook)
    return {"webhook": responses.webhook(webhook)}


def get_webhook(message: m.GetWebhook, request: Request) -> dict[str, Any]:
    return {"webhook": responses.webhook(get(message.webhook_id, request))}


def list_webhooks(message: m.ListWebhooks, request: Request) -> dict[str, Any]:
    """Returns a page of the workspace's webhooks, the newest first."""
    limit = message.max_results or 100
    if not 1 <= limit <= MAX_RESULTS:
        raise errors.InvalidParameterValue("max_results must be between 1 and 1000.")
    after = _position_of(message.page_token)
    rows = [
        webhook
        for webhook in webhooks.of_workspace(request.workspace)
        if after is None or (-webhook.creation_time, webhook.webhook_id) > after
    ]
    page = paging.fitting(rows[:limit], _weight)
    answer: dict[str, Any] = {}
    if page:
        answer["webhooks"] = [responses.webhook(webhook) for webhook in page]
    if len(page) < len(rows):
        last = page[-1]
        answer["next_page_token"] = paging.token([last.creation_time, last.webhook_id])
    return answer


def update_webhook(message: m.UpdateWebhook, request: Request) -> dict[str, Any]:
    """Changes a webhook. An empty name, URL or list of events is ignored. An empty description or
    secret clears the stored description or secret."""
    events = event_names(message.events)
    webhook = get(message.webhook_id, request)
    changes: dict[str, Any] = {}
    if message.name:
        check_name(message.name)
        changes["name"] = message.name
    if message.url:
        addresses.check_url(message.url)
        changes["url"] = message.url
    if events:
        check_distinct_events(events)
        changes["events"] = events
    if message.has("description"):
        changes["description"] = message.description
    if message.has("secret"):
        changes["sealed_secret"] = secret_values.seal(
            message.secret, webhook.workspace, webhook.webhook_id
        )
    if message.status:
        changes["status"] = message.status
    written = webhooks.change(webhook, changes)
    if written is None:
        raise _missing(message.webhook_id)
    return {"webhook": responses.webhook(written)}


def delete_webhook(message: m.DeleteWebhook, request: Request) -> dict[str, Any]:
    webhooks.delete(get(message.webhook_id, request))
    return {}


def get(webhook_id: str, request: Request) -> Webhook:
    """Reads a webhook. Raises ResourceDoesNotExist, also for one in another workspace."""
    webhook = webhooks.find(request.workspace, webhook_id)
    if webhook is None:
        raise _missing(webhook_id)
    return webhook


def event_names(events: Sequence[m.WebhookEvent]) -> tuple[EventName, ...]:
    """Returns the names of the webhook events in a request, in alphabetical order, as MLflow lists
    them. Raises InvalidParameterValue if an event does not exist."""
    return tuple(sorted(map(event_name, events)))


def event_name(event: m.WebhookEvent) -> EventName:
    entity, action = (event.entity or "").lower(), (event.action or "").lower()
    possible = ACTIONS.get(entity)
    if possible is None:
        raise errors.InvalidParameterValue("A webhook event needs an entity and an action.")
    if action not in possible:
        raise errors.InvalidParameterValue(
            f"Invalid action '{action}' for entity '{entity}'. Valid actions are: {list(possible)}"
        )
    return EventName(entity, action)


def _position_of(token: str) -> tuple[int, str] | None:
    """Parses a page token: the sort key (-creation time, id) of the last webhook of the previous
    page. None for an empty token."""
    position = paging.position_of(token)
    if position is None:
        return None
    if len(position) != 2 or not isinstance(position[0], int) or not isinstance(position[1], str):
        raise errors.InvalidParameterValue("Invalid page token")
    return -position[0], position[1]


def _weight(webhook: Webhook) -> int:
    """Estimates the bytes of a webhook's JSON in a response."""
    return 1000 + paging.weight_of((webhook.name, webhook.url, webhook.description))


def _missing(webhook_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Webhook with ID {webhook_id} not found.")
