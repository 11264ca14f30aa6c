"""Parses messages of JSON-RPC 2.0, as the Model Context Protocol sends them over HTTP."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from mlcore.http import Sent
from mlcore.wire.json_text import parse_json_text

Json = dict[str, Any]
RequestId = str | int

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
MAX_ID_LENGTH: Final = 1000
"""The most characters of a request's id. The answer repeats the id and must not exceed Lambda's
limit."""
VERSION_HEADER: Final = "mcp-protocol-version"


class RpcRequest(NamedTuple):
    """A JSON-RPC request (with an id) or notification (without an id)."""

    id: RequestId | None
    """The request's id; None for a notification, or for an answer of the client; both get no
    answer."""
    method: str
    params: Json
    version: str
    """The protocol's version that the HTTP header names; empty if there is none."""


class NotJsonRpc(NamedTuple):
    """The JSON-RPC error code and message for an HTTP request without a valid JSON-RPC message."""

    code: int
    message: str


def parse(sent: Sent) -> RpcRequest | NotJsonRpc:
    """Parses the JSON-RPC message in an HTTP request. Returns a :class:`NotJsonRpc` for any other
    request, also for a batch: the supported versions of the Model Context Protocol have none.
    Raises InvalidParameterValue if the body is invalid Base64."""
    media_type = sent.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        # Browsers send JSON from a page of another origin only after a preflight request.
        return NotJsonRpc(INVALID_REQUEST, "The Content-Type must be application/json.")
    try:
        body = parse_json_text(sent.body().decode())
    except ValueError as error:
        return NotJsonRpc(PARSE_ERROR, f"The body is not JSON: {error}")
    if not isinstance(body, dict) or body.get("jsonrpc") != "2.0":
        return NotJsonRpc(INVALID_REQUEST, "The body must be one object with jsonrpc 2.0.")
    version = sent.headers.get(VERSION_HEADER, "")
    if "method" not in body and ("result" in body or "error" in body):
        return RpcRequest(None, "", {}, version)
    method, params, request_id = body.get("method"), body.get("params", {}), body.get("id")
    if not isinstance(method, str):
        return NotJsonRpc(INVALID_REQUEST, "The field method must be a string.")
    if not isinstance(params, dict):
        return NotJsonRpc(INVALID_REQUEST, "The field params must be an object.")
    if "id" in body and (not isinstance(request_id, str | int) or isinstance(request_id, bool)):
        return NotJsonRpc(INVALID_REQUEST, "The field id must be a string or an integer.")
    if isinstance(request_id, str) and len(request_id) > MAX_ID_LENGTH:
        return NotJsonRpc(
            INVALID_REQUEST, f"The field id has more than {MAX_ID_LENGTH} characters."
        )
    return RpcRequest(request_id, method, params, version)
