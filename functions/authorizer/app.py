"""The authorizer of the HTTP API: says who calls, and lets everybody through.

A refusal of API Gateway's own would reach clients as ``{"message":"Forbidden"}`` and without the
challenge that makes a browser ask for a password. So an unknown caller is passed on without a
name, and the function behind answers 401 with MLflow's text. The answer is never empty: by it the
function behind knows that somebody asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from authorizer.address import viewer_address
from mlcore.db import capacity, deadline
from mlcore.entities.users import User
from mlcore.environment import AUTHENTICATION, OIDC
from mlcore.errors import MlflowError
from mlcore.http.request import headers_of
from mlcore.observability import logger

Authenticate = Callable[[str, str], User | None]
"""The user whom an Authorization header proves, else None; takes the caller's address, too."""


MOST_SECONDS: Final = 8.0
"""API Gateway waits ten for an authorizer."""


def _chosen(environment: Mapping[str, str]) -> tuple[str, Authenticate]:
    if environment.get(AUTHENTICATION) == OIDC:
        from authorizer import oidc  # noqa: PLC0415 -- its library is in a layer of its own

        return OIDC, oidc.authenticator(environment)
    from authorizer import basic  # noqa: PLC0415 -- as above: one of the two is imported

    return "basic", basic.authenticate


_method, _authenticate = _chosen(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Takes an authorizer's request of format 2.0, answers a simple response."""
    headers = headers_of(event)
    peer: str = event["requestContext"]["http"].get("sourceIp", "")
    address = viewer_address(peer, headers, os.environ)
    found: dict[str, Any] = {"method": _method}
    with deadline.within(context, MOST_SECONDS), capacity.measure():
        try:
            user = _authenticate(headers.get("authorization", ""), address)
        except MlflowError as error:
            # The table cannot be asked: nobody is known, and the function behind will say so.
            logger.warning("authentication failed", extra={"error_code": error.error_code})
            user = None
    if user is not None:
        found |= {"username": user.username, "is_admin": user.is_admin}
    return {"isAuthorized": True, "context": found}
