"""Transfers webhooks from an MLflow server to the product's table, without their secrets, which no
server returns."""

from __future__ import annotations

from collections.abc import Iterator

from mlcore.entities.webhooks import ACTIONS, DISABLED, EventName, Webhook
from mlcore.repos import webhooks
from operate.transfer.mlflow_client import Json, Server, SourceFailed
from operate.transfer.source_reader import API, none_if_unsupported
from operate.transfer.transfer_item import Content, TransferItem


def items(server: Server) -> Iterator[TransferItem]:
    """Yields the items that transfer an MLflow server's webhooks to this product; none if the
    server is older than 3.3 or keeps its data in files, or if the account there is no
    administrator's."""
    try:
        pages = server.pages("GET", f"{API}/webhooks", "webhooks", max_results=100)
        for fields in none_if_unsupported(pages) or ():
            yield _item(server.workspace, fields)
    except SourceFailed as failed:
        if not failed.forbidden:
            raise


def _item(workspace: str, fields: Json) -> TransferItem:
    events = (
        EventName(field["entity"].lower(), field["action"].lower()) for field in fields["events"]
    )
    webhook = Webhook(
        webhook_id=fields["webhook_id"],
        workspace=workspace,
        name=fields["name"],
        url=fields["url"],
        events=tuple(
            sorted(event for event in events if event.action in ACTIONS.get(event.entity, ()))
        ),
        # Disabled: both servers would call, and deliveries cannot be signed without the secret.
        status=DISABLED,
        description=fields.get("description", ""),
        sealed_secret="",
        creation_time=int(fields["creation_timestamp"]),
        last_update_time=int(fields["last_updated_timestamp"]),
    )

    def have() -> Content | None:
        existing = webhooks.find(workspace, webhook.webhook_id)
        return None if existing is None else _content(existing)

    def write(want: Content, existing: Content | None) -> None:
        if existing is None:
            webhooks.put(webhook)
        else:
            webhooks.change(webhook, {**want, "events": webhook.events})

    return TransferItem("webhook", webhook.webhook_id, lambda: _content(webhook), have, write)


def _content(webhook: Webhook) -> Content:
    """Returns the fields of a webhook that are transferred. Its status and secret have to be set in
    the table by hand."""
    return {
        "name": webhook.name,
        "url": webhook.url,
        "events": list(map(str, webhook.events)),
        "description": webhook.description,
    }
