"""The secret of a webhook, sealed for its item and opened for a delivery; bound to the webhook."""

from __future__ import annotations

from mlcore import secrets
from mlcore.entities.webhooks import Webhook


def sealed(secret: str, workspace: str, webhook_id: str) -> str:
    """What the item keeps: empty for no secret."""
    return secrets.seal(secret, _context(workspace, webhook_id)) if secret else ""


def opened(webhook: Webhook) -> str:
    """The secret in the clear, for no longer than a request takes; empty for none."""
    if not webhook.sealed_secret:
        return ""
    context = _context(webhook.workspace, webhook.webhook_id)
    return secrets.open_sealed(webhook.sealed_secret, context)


def _context(workspace: str, webhook_id: str) -> dict[str, str]:
    return {"workspace": workspace, "webhook_id": webhook_id}
