"""Answers that are larger than what Lambda returns: compressed, for clients that read gzip."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final

from mlcore import errors
from mlcore.http.response import Response

MAX_BODY_BYTES: Final = 6 * 1024 * 1024 - 16 * 1024
"""What Lambda returns at most, as JSON text, less room for status and headers. A larger answer
would reach the client as a 500, which it repeats for minutes."""

GZIP_BITS: Final = 16 + zlib.MAX_WBITS


def fit(response: Response, headers: Mapping[str, str]) -> Response:
    """The response, compressed if it would not fit otherwise. ``headers`` are the request's.

    Raises:
        BadRequest: it does not fit.
    """
    body = response.body
    if not isinstance(body, str | bytes) or _fits(body):
        return response
    if "gzip" in headers.get("accept-encoding", "").lower():
        packer = zlib.compressobj(3, zlib.DEFLATED, GZIP_BITS)
        data = body.encode() if isinstance(body, str) else body
        packed = packer.compress(data) + packer.flush()
        if _fits(packed):
            more = {"content-encoding": "gzip", "vary": "accept-encoding"}
            return response._replace(body=packed, headers={**response.headers, **more})
    raise errors.BadRequest(
        "The answer is larger than the 6 MB that this server can return at once. "
        "Ask for fewer results (max_results), or for fewer runs or steps."
    )


def _fits(body: str | bytes) -> bool:
    if isinstance(body, bytes):  # which Lambda's JSON has as Base64
        return len(body) * 4 // 3 < MAX_BODY_BYTES
    # Lambda's JSON escapes these two in the body, which is ASCII.
    return len(body) <= MAX_BODY_BYTES // 2 or (
        len(body) + body.count('"') + body.count("\\") <= MAX_BODY_BYTES
    )
