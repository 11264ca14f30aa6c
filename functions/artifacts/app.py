"""The RPCs of files: the artifact proxy, listings and downloads."""

from __future__ import annotations

from mlcore.http import lambda_handler

RPCS = ()

handler = lambda_handler(RPCS)
