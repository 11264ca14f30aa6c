"""The settings that each call through the AI gateway needs: limits, and rules of redaction."""

from __future__ import annotations

from mlcore.db.table import table
from mlcore.repos.settings import gateway_limits, redaction


def read() -> None:
    """Reads the settings ``gateway_limits`` and ``redaction`` in one BatchGetItem, and caches both.
    Does nothing while both are cached. Raises TemporarilyUnavailable if the rules of redaction
    cannot be read."""
    if gateway_limits.is_read() and not redaction.unread_keys():
        return
    limits, rules = table.batch_get([gateway_limits.key(), redaction.key()])
    gateway_limits.learn(limits)
    redaction.learn([rules])
