"""What a caller of the gateway sends: a JSON object, and the endpoint that it names."""

from __future__ import annotations

import json
from typing import Any

from mlcore.errors import GatewayCallFailed
from mlcore.http import Request

Json = dict[str, Any]


def body_of(request: Request) -> Json:
    """Raises GatewayCallFailed: the body is no JSON object."""
    encoding = request.headers.get("content-encoding", "").lower()
    if encoding not in ("", "identity"):
        raise GatewayCallFailed(
            400, f"Request bodies encoded as {encoding!r} cannot be read by this server."
        )
    try:
        body = json.loads(request.body())
    except ValueError as error:
        raise GatewayCallFailed(400, f"Invalid JSON payload: {error}") from None
    if not isinstance(body, dict):
        raise GatewayCallFailed(400, "Invalid JSON payload: it must be an object")
    return body


def named_endpoint(request: Request, body: Json) -> str:
    """The endpoint of the path; else of the body's ``model``, which is taken out.

    Raises:
        GatewayCallFailed: none is named.
    """
    name = request.parameters.get("endpoint_name") or body.pop("model", None)
    if not name or not isinstance(name, str):
        raise GatewayCallFailed(400, "Missing required 'model' parameter in request body")
    return name
