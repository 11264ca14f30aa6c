"""Webhooks: one item each, all of a workspace in one partition. All reads are strongly
consistent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlcore.db import keys
from mlcore.db.attribute_types import TextAttribute
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Put, TransactionFailed, table
from mlcore.entities.webhooks import EventName, Webhook
from mlcore.ids import new_ulid, now_ms
from mlcore.models.webhooks import Webhook as WebhookItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.workspaces import guarded_writes
from mlcore.repos.workspaces.versioned_moves import item_at


def put(webhook: Webhook) -> None:
    """Writes a new webhook. Its id must be new: a webhook with the same id would be overwritten.
    Raises ResourceDoesNotExist if the workspace was deleted."""
    key = keys.webhook(webhook.workspace, webhook.webhook_id)
    model = WebhookItem(
        PK=key.pk,
        SK=key.sk,
        webhook_id=webhook.webhook_id,
        name=webhook.name,
        url=webhook.url,
        events=_written(webhook.events),
        status=webhook.status,
        description=webhook.description or None,
        secret=webhook.sealed_secret or None,
        creation_time=webhook.creation_time,
        last_update_time=webhook.last_update_time,
        updated_at=now_ms(),
        version=1,
    )
    guarded_writes.write([Put(model.serialize())], creates_in=webhook.workspace)


def find(workspace: str, webhook_id: str) -> Webhook | None:
    """Returns a webhook; None if the workspace has none with this id. One consistent GetItem."""
    item = table.get(keys.webhook(workspace, webhook_id))
    return None if item is None else _webhook(workspace, item)


def of_workspace(workspace: str) -> list[Webhook]:
    """Returns all webhooks of a workspace, newest first."""
    items = table.query_all(keys.webhook(workspace, "").pk, prefix=keys.webhook_prefix())
    webhooks = [_webhook(workspace, item) for item in items]
    webhooks.sort(key=lambda webhook: (-webhook.creation_time, webhook.webhook_id))
    return webhooks


def change(webhook: Webhook, values: dict[str, Any]) -> Webhook | None:
    """Sets fields of a webhook, given by their names in :class:`Webhook`. Returns the changed
    webhook; None if it was deleted meanwhile."""
    update = Update()
    update.require_exists(WebhookItem.PK)
    now = now_ms()
    update.set(WebhookItem.updated_at, now)
    update.set(WebhookItem.last_update_time, now)
    update.add(WebhookItem.version, 1)
    for field, value in values.items():
        attribute = _CHANGEABLE[field]
        text = _written(value) if attribute is WebhookItem.events else value
        if text:
            update.set(attribute, text)
        else:
            update.remove(attribute)
    try:
        item = table.update(
            keys.webhook(webhook.workspace, webhook.webhook_id), update, returning=True
        )
    except ConditionFailed:
        return None
    return _webhook(webhook.workspace, item)


def move(webhook: Webhook, workspace: str, seal_again: Callable[[Webhook], str]) -> None:
    """Moves a webhook to another workspace, in one transaction. Does nothing if it was deleted or
    moved meanwhile. A copy that an interrupted call of release 0.1.0 has made stays.

    Args:
        seal_again: returns the webhook's secret, encrypted for the other workspace.

    Raises:
        WriteConflict: the webhook was changed since it was read.
    """
    key = keys.webhook(webhook.workspace, webhook.webhook_id)
    raw = table.get(key)
    if raw is None:
        return
    copy = item_at(keys.webhook(workspace, webhook.webhook_id), raw)
    if secret := seal_again(_webhook(webhook.workspace, raw)):
        copy[WebhookItem.secret.attr_name] = WebhookItem.secret.raw(secret)
    absent, unchanged = ConditionExpression(), ConditionExpression()
    absent.require_absent(WebhookItem.PK)
    unchanged.require_equal(WebhookItem.version, WebhookItem.of(raw).version)
    try:
        table.transact([Put(copy, absent), Delete(key, unchanged)], new_ulid())
    except TransactionFailed as failed:
        if failed.items.get(0) is None:
            raise WriteConflict from failed
        delete(webhook)


def delete(webhook: Webhook) -> None:
    """Deletes a webhook's item and with it the secret. Idempotent."""
    table.delete(keys.webhook(webhook.workspace, webhook.webhook_id))


_CHANGEABLE: Mapping[str, TextAttribute[Any]] = {
    "name": WebhookItem.name,
    "url": WebhookItem.url,
    "events": WebhookItem.events,
    "status": WebhookItem.status,
    "description": WebhookItem.description,
    "sealed_secret": WebhookItem.secret,
}
"""Attributes by the field names of :class:`Webhook`."""


def _webhook(workspace: str, raw: Raw) -> Webhook:
    item = WebhookItem.of(raw)
    return Webhook(
        webhook_id=item.webhook_id,
        workspace=workspace,
        name=item.name,
        url=item.url,
        events=tuple(EventName(*name.split(".")) for name in item.events.split()),
        status=item.status,
        description=item.description or "",
        sealed_secret=item.secret or "",
        creation_time=item.creation_time,
        last_update_time=item.last_update_time,
    )


def _written(events: tuple[EventName, ...]) -> str:
    return " ".join(map(str, events))
