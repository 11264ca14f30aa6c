"""Parses calls through the gateway: reads the JSON body, and finds the endpoint's name in the path
or in the body's ``model``."""

from __future__ import annotations

import re
import zlib
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote, unquote

from mlcore.auth.api_key_tokens import keys_in
from mlcore.errors import GatewayCallFailed
from mlcore.http import Sent
from mlcore.providers.proxied import ProxiedRequest
from mlcore.wire.json_text import parse_json_bytes

Json = dict[str, Any]

MAX_DECODED_BYTES: Final = 16 * 1024 * 1024
"""The largest body after decompression; Lambda takes at most 6 MB of a compressed one."""
_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""zlib's window sizes, which include the format, by content encoding."""

_MAX_ZSTD_WINDOW_LOG: Final = 24
"""Base-2 logarithm of the bytes of memory that decompressing a body may need: 16 MiB."""

_PATH_CHARACTERS: Final = "/:@!$&'()*+,;=-._~"
"""Characters that a path may hold as they are (RFC 3986, section 3.3)."""


_QUERY: Final = re.compile(r"[!-~]*")
_PARAMETER: Final = re.compile(r"[^&;=]+")
_OVERRIDES: Final = ("$http", "$ct", "$req")
"""Prefixes of query parameters that Google's servers accept in place of the request's method,
headers, body or content type, such as ``$httpMethod``."""
_REQUESTS_IN_BODIES: Final = "batch"
"""The path at which Google's servers execute the HTTP requests in a body, with any method."""
_UNCOUNTED: Final = "realtime"
"""The path segment of realtime sessions: the client then talks to the provider directly, so that
limits and budgets would not apply."""
_WITH_BODIES: Final = ("POST", "PATCH")
_NOT_JSON: Final = ("multipart/", "application/octet-stream", "audio/", "image/", "video/")
"""Beginnings of the types of bodies that are forwarded as bytes. Any other body must be JSON,
whatever its type: clients of MLflow's gateway need not name it."""


class _Decompressor(Protocol):
    """A decompressor of the standard library, or of its backport."""

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class GatewayCall(NamedTuple):
    """A call of a gateway endpoint, parsed: the endpoint's name and the body."""

    endpoint_name: str
    """The name of the gateway endpoint, from the path or else from the body's ``model``."""
    body: Json
    """The JSON body, without ``model`` if ``model`` named the endpoint."""


def parse(sent: Sent) -> GatewayCall:
    """Reads the endpoint's name and the JSON body of a call. The name is in the path or in the
    body's ``model``. Raises GatewayCallFailed: 400 if the body is not a JSON object or cannot be
    decompressed, or if no endpoint is named; 413 if it is too large after decompression."""
    body = _body(sent)
    name = sent.parameters.get("endpoint_name") or body.pop("model", None)
    if not name or not isinstance(name, str):
        raise GatewayCallFailed(400, "Missing required 'model' parameter in request body")
    return GatewayCall(name, body)


class ProxyCall(NamedTuple):
    """A request to forward to a path, which the caller chose, of a gateway endpoint's provider."""

    endpoint_name: str
    request: ProxiedRequest


def parse_proxy(sent: Sent) -> ProxyCall:
    """Reads the endpoint's name, the provider's path, the query and the body: a JSON object, bytes
    (a form with files, audio, an image or a video), or none.

    Raises:
        GatewayCallFailed: 400 if the body is none of these, if a GET or DELETE has a body or a
            PATCH another one than JSON, if the path contains ``.`` or ``..``, leads to batches of
            requests or to realtime sessions, or if the query is not percent-encoded or sets the
            method, the type or headers. 401 if the address contains an API key of this server,
            because addresses are written to logs. 413 if the decompressed body is too large, or a
            body of bytes may be incomplete.
    """
    path = sent.parameters["path"]
    segments = [segment.partition(";")[0].strip().lower() for segment in path.split("/")]
    if any(segment in (".", "..") for segment in segments):
        raise GatewayCallFailed(400, "The path must not contain '.' or '..' as a segment")
    if next(filter(None, segments), "") == _REQUESTS_IN_BODIES:
        raise GatewayCallFailed(400, "Requests within a body are not forwarded")
    if _UNCOUNTED in segments:
        raise GatewayCallFailed(400, "Realtime sessions are not forwarded: they cannot be counted")
    query = sent.query_text()
    if _QUERY.fullmatch(query) is None:
        raise GatewayCallFailed(400, "The query must be percent-encoded")
    if keys_in(f"{path}?{unquote(query)}"):
        raise GatewayCallFailed(401, "An API key of this server must be sent in a header")
    names = (unquote(name).strip().lower() for name in _PARAMETER.findall(query))
    if any(name.startswith(_OVERRIDES) for name in names):
        raise GatewayCallFailed(400, "The query must not set the method, the type or headers")
    target = quote(path, safe=_PATH_CHARACTERS) + (f"?{query}" if query else "")
    method = "GET" if sent.method == "HEAD" else sent.method
    content_type = sent.headers.get("content-type", "")
    name = sent.parameters["endpoint_name"]
    request = ProxiedRequest(target, method, content_type=content_type, endpoint=name)
    is_encoded = "content-encoding" in sent.headers
    if not (sent.has_body() or sent.body_is_incomplete() or is_encoded):
        return ProxyCall(name, request)
    if method not in _WITH_BODIES:
        raise GatewayCallFailed(400, f"A {method} request must not have a body")
    if content_type.lower().startswith(_NOT_JSON):
        if method != "POST":
            raise GatewayCallFailed(400, f"The body of a {method} request must be JSON")
        return ProxyCall(name, request._replace(content=_raw(sent)))
    return ProxyCall(name, request._replace(body=_body(sent)))


def _raw(sent: Sent) -> bytes:
    if sent.body_is_incomplete():
        raise GatewayCallFailed(413, "The request body did not arrive as it was sent.")
    return _content(sent)


def _content(sent: Sent) -> bytes:
    return _decoded(sent.body(), sent.headers.get("content-encoding", "").strip().lower())


def _body(sent: Sent) -> Json:
    content = _content(sent)
    try:
        body = parse_json_bytes(content)
    except ValueError as error:
        raise GatewayCallFailed(400, f"Invalid JSON payload: {error}") from None
    if not isinstance(body, dict):
        raise GatewayCallFailed(400, "Invalid JSON payload: it must be an object")
    return body


def _decoded(content: bytes, encoding: str) -> bytes:
    """Decompresses a body. Raises GatewayCallFailed if its encoding is unknown or wrong (400), or
    if it is too large (413)."""
    if encoding in ("", "identity"):
        return content
    decompressor: _Decompressor
    failures: tuple[type[Exception], ...] = (zlib.error,)
    if encoding in _WINDOW_BITS:
        decompressor = zlib.decompressobj(_WINDOW_BITS[encoding])
    elif encoding == "zstd":
        from backports import zstd  # noqa: PLC0415 -- few clients send it

        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _MAX_ZSTD_WINDOW_LOG}
        decompressor = zstd.ZstdDecompressor(options=options)
        failures = (zstd.ZstdError,)
    else:
        raise GatewayCallFailed(
            400, f"Request bodies encoded as {encoding!r} cannot be read by this server."
        )
    try:
        decoded = decompressor.decompress(content, MAX_DECODED_BYTES + 1)
    except failures as error:
        raise GatewayCallFailed(400, f"The request body is not valid {encoding}: {error}") from None
    if len(decoded) > MAX_DECODED_BYTES:
        raise GatewayCallFailed(413, f"The request body exceeds {MAX_DECODED_BYTES} bytes.")
    if not decompressor.eof:
        raise GatewayCallFailed(400, f"The request body is not valid {encoding}: it is cut off")
    return decoded
