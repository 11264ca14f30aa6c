"""Encrypts the secret of a webhook for storage, and decrypts it for a delivery. The ciphertext is
bound to the webhook's id."""

from __future__ import annotations

from mlcore import secrets
from mlcore.entities.webhooks import Webhook


def seal(secret: str, workspace: str, webhook_id: str) -> str:
    """Encrypts a webhook's secret to the text that its item stores; empty without a secret."""
    return secrets.seal(secret, _encryption_context(workspace, webhook_id)) if secret else ""


def open_secret(webhook: Webhook) -> str:
    """Decrypts and returns a webhook's secret; empty without one."""
    if not webhook.sealed_secret:
        return ""
    context = _encryption_context(webhook.workspace, webhook.webhook_id)
    return secrets.open_sealed(webhook.sealed_secret, context)


def _encryption_context(workspace: str, webhook_id: str) -> dict[str, str]:
    return {"workspace": workspace, "webhook_id": webhook_id}
