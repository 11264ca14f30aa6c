"""Determines a caller's IP address without trusting headers that callers can forge.

Behind CloudFront, API Gateway sees one of CloudFront's servers as its peer. The caller's address is
in X-Forwarded-For: CloudFront appends the address of its peer, and so does API Gateway. A caller
who bypasses CloudFront can send any such header. So the header is trusted only together with the
secret word that our distribution adds to each request, and only the entry that CloudFront appended.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from typing import Final

from mlcore.http.cloudfront_bypass import ORIGIN_HEADER

ORIGIN_WORD: Final = "ORIGIN_WORD"
"""Environment: the secret word. If it is unset, X-Forwarded-For is never trusted."""

_FORWARDED: Final = "x-forwarded-for"


def viewer_address(peer: str, headers: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Returns the caller's address from X-Forwarded-For if the request came through our CloudFront
    distribution and the header has an address, else the peer's address.

    Args:
        peer: the address that connected to API Gateway, as API Gateway reports it.
        headers: names in lower case; the values of a repeated header are joined by commas.
    """
    expected, sent = environment.get(ORIGIN_WORD, ""), headers.get(ORIGIN_HEADER, "")
    if not expected or not hmac.compare_digest(expected.encode(), sent.encode()):
        return peer
    hops = [hop.strip() for hop in headers.get(_FORWARDED, "").split(",")]
    if hops[-1] == peer:
        hops.pop()
    try:
        return str(ipaddress.ip_address(hops[-1])) if hops else peer
    except ValueError:
        return peer
