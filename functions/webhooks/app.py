"""The RPCs of webhooks: who wants to hear of which event."""

from __future__ import annotations

from mlcore.http import lambda_handler

RPCS = ()

handler = lambda_handler(RPCS)
