"""The authorizer of the HTTP API: says who calls, and lets everybody through.

A refusal of API Gateway's own would reach clients as ``{"message":"Forbidden"}`` and without the
challenge that makes a browser ask for a password. So an unknown caller is passed on without a
name, and the function behind answers 401 with MLflow's text.
"""

from __future__ import annotations

from typing import Any

from authorizer.basic import authenticate
from mlcore.db import capacity
from mlcore.errors import MlflowError
from mlcore.http.request import headers_of
from mlcore.observability import logger


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Takes an authorizer's request of format 2.0, answers a simple response."""
    about = event["requestContext"]
    address = about["http"].get("sourceIp", "")
    found: dict[str, Any] = {}
    with capacity.measure():
        try:
            user = authenticate(headers_of(event).get("authorization", ""), address)
        except MlflowError as error:
            # The table cannot be asked: nobody is known, and the function behind will say so.
            logger.warning("authentication failed", extra={"error_code": error.error_code})
            user = None
    if user is not None:
        found = {"username": user.username, "is_admin": user.is_admin, "method": "basic"}
    return {"isAuthorized": True, "context": found}
