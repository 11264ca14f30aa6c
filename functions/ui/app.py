"""The RPCs of what only the web UI asks for."""

from __future__ import annotations

from mlcore.http import lambda_handler

RPCS = ()

handler = lambda_handler(RPCS)
