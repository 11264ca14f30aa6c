"""Starts the call of a gateway endpoint on behalf of the request's user."""

from __future__ import annotations

from mlcore.gateway import guarded_calls
from mlcore.gateway.caller import Caller
from mlcore.gateway.invocation import Invocation
from mlcore.http import Request


def start_call(request: Request, endpoint_name: str) -> Invocation:
    """Finds the gateway endpoint, checks the budgets and limits of its calls, and returns the
    started call. The route's policy has checked that the request's user may call the endpoint.
    Raises the errors of :func:`mlcore.gateway.guarded_calls.begin`."""
    return guarded_calls.begin(
        request.workspace,
        endpoint_name,
        Caller(
            request.username(),
            request.headers,
            None if request.access is None else request.access.key_id or None,
        ),
        known=None if request.access is None else request.access.gateway,
    )
