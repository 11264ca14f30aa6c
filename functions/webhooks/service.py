"""The rules of webhooks, as MLflow's server has them: names, URLs, events, secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from mlcore import errors, ids, paging
from mlcore.entities.webhooks import ACTIONS, ACTIVE, EventName, Webhook
from mlcore.http import Request
from mlcore.limits.webhooks import check_different, check_name
from mlcore.repos import webhooks
from mlcore.responses import webhooks as responses
from mlcore.webhooks import addresses, sealing
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
    check_different(events)
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
        sealed_secret=sealing.sealed(message.secret, request.workspace, webhook_id),
        creation_time=now,
        last_update_time=now,
    )
    webhooks.put(webhook)
    return {"webhook": responses.webhook(webhook)}


def get_webhook(message: m.GetWebhook, request: Request) -> dict[str, Any]:
    return {"webhook": responses.webhook(get(message.webhook_id, request))}


def list_webhooks(message: m.ListWebhooks, request: Request) -> dict[str, Any]:
    """The newest first."""
    most = message.max_results or 100
    if not 1 <= most <= MAX_RESULTS:
        raise errors.InvalidParameterValue("max_results must be between 1 and 1000.")
    after = _place_in(message.page_token)
    rows = [
        webhook
        for webhook in webhooks.of_workspace(request.workspace)
        if after is None or (-webhook.creation_time, webhook.webhook_id) > after
    ]
    shown = paging.fitting(rows[:most], _weight)
    answer: dict[str, Any] = {}
    if shown:
        answer["webhooks"] = [responses.webhook(webhook) for webhook in shown]
    if len(shown) < len(rows):
        last = shown[-1]
        answer["next_page_token"] = paging.token([last.creation_time, last.webhook_id])
    return answer


def update_webhook(message: m.UpdateWebhook, request: Request) -> dict[str, Any]:
    """An empty name, URL or list of events changes nothing, an empty description or secret clears
    what was there."""
    events = event_names(message.events)
    webhook = get(message.webhook_id, request)
    changed: dict[str, Any] = {}
    if message.name:
        check_name(message.name)
        changed["name"] = message.name
    if message.url:
        addresses.check_url(message.url)
        changed["url"] = message.url
    if events:
        check_different(events)
        changed["events"] = events
    if message.has("description"):
        changed["description"] = message.description
    if message.has("secret"):
        changed["sealed_secret"] = sealing.sealed(
            message.secret, webhook.workspace, webhook.webhook_id
        )
    if message.status:
        changed["status"] = message.status
    written = webhooks.change(webhook, changed)
    if written is None:
        raise _missing(message.webhook_id)
    return {"webhook": responses.webhook(written)}


def delete_webhook(message: m.DeleteWebhook, request: Request) -> dict[str, Any]:
    webhooks.delete(get(message.webhook_id, request))
    return {}


def get(webhook_id: str, request: Request) -> Webhook:
    """A webhook of another workspace looks missing."""
    webhook = webhooks.find(request.workspace, webhook_id)
    if webhook is None:
        raise _missing(webhook_id)
    return webhook


def event_names(events: Sequence[m.WebhookEvent]) -> tuple[EventName, ...]:
    """The events of a request in alphabetical order, as MLflow lists them.

    Raises:
        InvalidParameterValue: nothing of the kind ever happens.
    """
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


def _place_in(token: str) -> tuple[int, str] | None:
    position = paging.position_of(token)
    if position is None:
        return None
    if len(position) != 2 or not isinstance(position[0], int) or not isinstance(position[1], str):
        raise errors.InvalidParameterValue("Invalid page token")
    return -position[0], position[1]


def _weight(webhook: Webhook) -> int:
    return 1000 + paging.weight_of((webhook.name, webhook.url, webhook.description))


def _missing(webhook_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Webhook with ID {webhook_id} not found.")
