"""Webhooks, from the server to the table, without the secrets, which no server tells."""

from __future__ import annotations

from collections.abc import Iterator

from mlcore.entities.webhooks import ACTIONS, DISABLED, EventName, Webhook
from mlcore.repos import webhooks
from operate.transfer.item import Content, Item
from operate.transfer.rest import Json, Server, SourceFailed
from operate.transfer.source import API


def items(server: Server) -> Iterator[Item]:
    """None of a server before 3.3, or of one that lets only administrators ask."""
    try:
        for told in server.pages("GET", f"{API}/webhooks", "webhooks", max_results=100):
            yield _item(server.workspace, told)
    except SourceFailed as failed:
        if not (failed.unknown or failed.forbidden):
            raise


def _item(workspace: str, fields: Json) -> Item:
    events = (EventName(one["entity"].lower(), one["action"].lower()) for one in fields["events"])
    webhook = Webhook(
        webhook_id=fields["webhook_id"],
        workspace=workspace,
        name=fields["name"],
        url=fields["url"],
        events=tuple(sorted(one for one in events if one.action in ACTIONS.get(one.entity, ()))),
        # Both servers would call; and without its secret no delivery is signed.
        status=DISABLED,
        description=fields.get("description", ""),
        sealed_secret="",
        creation_time=int(fields["creation_timestamp"]),
        last_update_time=int(fields["last_updated_timestamp"]),
    )

    def have() -> Content | None:
        found = webhooks.find(workspace, webhook.webhook_id)
        return None if found is None else _content(found)

    def write(want: Content, found: Content | None) -> None:
        if found is None:
            webhooks.put(webhook)
        else:
            webhooks.change(webhook, {**want, "events": webhook.events})

    return Item("webhook", webhook.webhook_id, lambda: _content(webhook), have, write)


def _content(webhook: Webhook) -> Content:
    """What moves. Status and secret are the target's own."""
    return {
        "name": webhook.name,
        "url": webhook.url,
        "events": list(map(str, webhook.events)),
        "description": webhook.description,
    }
