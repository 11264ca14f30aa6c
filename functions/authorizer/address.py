"""From which address a caller calls; believes no header that a caller can write.

Behind CloudFront the peer that API Gateway sees is one of CloudFront's servers, and the caller is
in X-Forwarded-For: CloudFront appends its own peer to what it was sent, API Gateway does the same.
Whoever calls API Gateway past CloudFront can send any such header. So it counts only beside the
word that our distribution adds to each request, and then only the entry that CloudFront appended.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from typing import Final

ORIGIN_WORD: Final = "ORIGIN_WORD"
"""Environment: the word; without it all callers come directly."""

ORIGIN_HEADER: Final = "x-mlflow-origin"
_FORWARDED: Final = "x-forwarded-for"


def viewer_address(peer: str, headers: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """The caller's address; the peer's where nobody trustworthy says otherwise.

    Args:
        peer: who connected to API Gateway, as it says.
        headers: names in lower case; what was sent twice is joined by commas.
    """
    word, said = environment.get(ORIGIN_WORD, ""), headers.get(ORIGIN_HEADER, "")
    if not word or not hmac.compare_digest(word.encode(), said.encode()):
        return peer
    hops = [hop.strip() for hop in headers.get(_FORWARDED, "").split(",")]
    if hops[-1] == peer:
        hops.pop()
    try:
        return str(ipaddress.ip_address(hops[-1])) if hops else peer
    except ValueError:
        return peer
