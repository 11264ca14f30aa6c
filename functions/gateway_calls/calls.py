"""The call that a request asks for."""

from __future__ import annotations

from mlcore.gateway.invocation import Invocation, begun
from mlcore.gateway.recording import Caller
from mlcore.http import Request


def call_of(request: Request, endpoint_name: str) -> Invocation:
    """Raises as :func:`mlcore.gateway.invocation.begun`."""
    return begun(
        request.workspace,
        endpoint_name,
        Caller(request.username(), request.headers),
        known=None if request.access is None else request.access.gateway,
    )
