"""Parsers of calls through the gateway: a JSON object, and the endpoint that it or the path
names."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from mlcore.errors import GatewayCallFailed
from mlcore.http import Sent

Json = dict[str, Any]


class Asked(NamedTuple):
    """A parsed call."""

    endpoint_name: str
    """The endpoint of the path; else of the body's ``model``."""
    body: Json
    """Without a ``model`` that names the endpoint."""


def parse(sent: Sent) -> Asked:
    """Raises GatewayCallFailed: the body is no JSON object, or no endpoint is named."""
    body = _body(sent)
    name = sent.parameters.get("endpoint_name") or body.pop("model", None)
    if not name or not isinstance(name, str):
        raise GatewayCallFailed(400, "Missing required 'model' parameter in request body")
    return Asked(name, body)


def _body(sent: Sent) -> Json:
    encoding = sent.headers.get("content-encoding", "").lower()
    if encoding not in ("", "identity"):
        raise GatewayCallFailed(
            400, f"Request bodies encoded as {encoding!r} cannot be read by this server."
        )
    try:
        body = json.loads(sent.body())
    except ValueError as error:
        raise GatewayCallFailed(400, f"Invalid JSON payload: {error}") from None
    if not isinstance(body, dict):
        raise GatewayCallFailed(400, "Invalid JSON payload: it must be an object")
    return body
