"""Keys of webhooks. Those of a workspace share a partition: a list is a consistent Query per MB."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

WEBHOOK = Pattern(
    "webhook", "WEBHOOKS#<workspace>", "WH#<webhook_id>", "a URL and the events that it gets"
)

WEBHOOK_PATTERNS = (WEBHOOK,)


def webhook(workspace: str, webhook_id: str) -> Key:
    return Key(WEBHOOK.pk.build(workspace), WEBHOOK.sk.build(webhook_id))


def webhook_prefix() -> str:
    return WEBHOOK.sk.prefix()
