"""Tells requests that came through the stack's CloudFront distribution from those that bypass it.

The distribution adds a secret word as a header to each request, and replaces one that a viewer
sent. A deployment with ``OnlyThroughUi`` refuses requests without the word, so that a firewall in
front of the distribution sees all of them.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from mlcore.http.response import Response

ORIGIN_HEADER: Final = "x-mlflow-origin"
REQUIRED_WORD: Final = "REQUIRED_ORIGIN_WORD"
"""Environment variable: the word that each request must have in a header; empty for none."""

REFUSAL: Final = Response(
    403,
    '{"error_code":"PERMISSION_DENIED","message":"This server answers through the address of its '
    'web UI only."}',
)


def bypasses_cloudfront(environment: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    """Whether a request must have the secret word that the stack's CloudFront distribution adds,
    and has a wrong word, or none."""
    required = environment.get(REQUIRED_WORD, "")
    sent = headers.get(ORIGIN_HEADER, "")
    return bool(required) and not hmac.compare_digest(required.encode(), sent.encode())
