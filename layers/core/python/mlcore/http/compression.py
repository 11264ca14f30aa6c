"""Compresses responses with gzip, if the client accepts it: in Lambda from a few KB on, because
CloudFront compresses nothing that it may not cache; and anywhere those that exceed Lambda's limit.

Level 3 makes 190 KB of runs a sixth as large in 0.7 ms, and 6 KB a quarter in 0.1 ms. On a laptop
no network carries the bytes, so that time would be lost.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from typing import Final

from mlcore import errors
from mlcore.http.response import Response

MAX_BODY_BYTES: Final = 6 * 1024 * 1024 - 16 * 1024
"""Lambda's limit for a response as JSON text, less room for status and headers. A larger response
would become a 500, which clients retry for minutes."""

GZIP_BITS: Final = 16 + zlib.MAX_WBITS
_LEVEL: Final = 3
_FROM_BYTES: Final = 2048
"""Text of this size is compressed in Lambda."""
_IN_LAMBDA: Final = "AWS_LAMBDA_RUNTIME_API"
"""Environment variable that Lambda sets."""


def fit(response: Response, headers: Mapping[str, str]) -> Response:
    """Returns the response. It is compressed if the client accepts gzip, and compression saves time
    or the response is too large. A streamed response is returned unchanged. Raises BadRequest if
    the response is too large even when compressed, or is too large and the client does not accept
    gzip.

    Args:
        headers: those of the request, with names in lower case.
    """
    body = response.body
    if not isinstance(body, str | bytes):
        return response
    fits = _fits(body)
    if fits and not _is_worth(body):
        return response
    if "gzip" in headers.get("accept-encoding", "").lower():
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, GZIP_BITS)
        data = body.encode() if isinstance(body, str) else body
        packed = packer.compress(data) + packer.flush()
        if _fits(packed):
            more = {"content-encoding": "gzip", "vary": "Origin, Accept-Encoding"}
            return response._replace(body=packed, headers={**response.headers, **more})
    if fits:
        return response
    raise errors.BadRequest(
        "The answer is larger than the 6 MB that this server can return at once. "
        "Ask for fewer results (max_results), or for fewer runs or steps."
    )


def _is_worth(body: str | bytes) -> bool:
    """Whether compressing the body saves time: it is a text that Lambda sends over a network.
    (Bytes are files, most of them compressed.)"""
    return isinstance(body, str) and len(body) >= _FROM_BYTES and _IN_LAMBDA in os.environ


def _fits(body: str | bytes) -> bool:
    if isinstance(body, bytes):  # sent as Base64
        return len(body) * 4 // 3 < MAX_BODY_BYTES
    if len(body) <= MAX_BODY_BYTES // 6:
        return True
    # Lambda's JSON escapes quotation marks, backslashes and, as up to six bytes, control
    # characters, of which CSV may be full.
    return len(json.dumps(body, ensure_ascii=False).encode()) <= MAX_BODY_BYTES
