"""Parses calls through the gateway: reads the JSON body, and finds the endpoint's name in the path
or in the body's ``model``."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from mlcore.errors import GatewayCallFailed
from mlcore.http import Sent

Json = dict[str, Any]

_PATH_CHARACTERS: Final = "/:@!$&'()*+,;=-._~"
"""Characters that a path may hold as they are (RFC 3986, section 3.3)."""


class GatewayCall(NamedTuple):
    """A call of a gateway endpoint, parsed: the endpoint's name and the body."""

    endpoint_name: str
    """From the path, else from the body's ``model``."""
    body: Json
    """The JSON body, without ``model`` if ``model`` named the endpoint."""


def parse(sent: Sent) -> GatewayCall:
    """Reads the endpoint's name and the JSON body of a call. The name is in the path or in the
    body's ``model``. Raises GatewayCallFailed (400) if the body is not a JSON object, or if no
    endpoint is named."""
    body = _body(sent)
    name = sent.parameters.get("endpoint_name") or body.pop("model", None)
    if not name or not isinstance(name, str):
        raise GatewayCallFailed(400, "Missing required 'model' parameter in request body")
    return GatewayCall(name, body)


class ProxyCall(NamedTuple):
    """A request that is forwarded to any path of an endpoint's provider."""

    endpoint_name: str
    path: str
    """Below the provider's root, percent-encoded, with the query."""
    body: Json
    """As it is, with its own ``model``."""


def parse_proxy(sent: Sent) -> ProxyCall:
    """Reads the endpoint's name, the provider's path and the JSON body. Raises GatewayCallFailed
    (400) if the body is not a JSON object, or if the path would lead out of the provider's
    root."""
    path = sent.parameters["path"]
    if any(segment in (".", "..") for segment in path.split("/")):
        raise GatewayCallFailed(400, "The path must not contain '.' or '..' as a segment")
    query = sent.query_text()
    target = quote(path, safe=_PATH_CHARACTERS) + (f"?{query}" if query else "")
    return ProxyCall(sent.parameters["endpoint_name"], target, _body(sent))


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
