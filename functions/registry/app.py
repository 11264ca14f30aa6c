"""The RPCs of registered models, their versions and aliases."""

from __future__ import annotations

from mlcore.http import lambda_handler

RPCS = ()

handler = lambda_handler(RPCS)
