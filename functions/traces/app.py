"""The RPCs of traces, their spans and assessments."""

from __future__ import annotations

from mlcore.http import lambda_handler

RPCS = ()

handler = lambda_handler(RPCS)
