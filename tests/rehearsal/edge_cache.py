"""CloudFront's cache, by the policies and the error responses of a deployed distribution. It keeps
what it may keep for everybody, cookies included."""

from __future__ import annotations

import re
import threading
import time
from typing import Any, Final, NamedTuple

from tests.rehearsal.reply import Reply


class Lifetime(NamedTuple):
    """Seconds for which a cache policy keeps an answer."""

    minimum: int
    default: int
    maximum: int


POLICIES: Final = {
    "658327ea-f89d-4fab-a63d-7e88639e58f6": Lifetime(1, 86_400, 31_536_000),
    "4135ea2d-6df8-44a3-9df3-4b5a84be39ad": Lifetime(0, 0, 0),
}
"""AWS's managed policies CachingOptimized and CachingDisabled. The key of both has neither cookies
nor headers nor the query."""
ERRORS: Final = (400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504)
ERROR_SECONDS: Final = 10
"""How long errors are kept, also with CachingDisabled, unless the distribution says otherwise."""
HIT: Final = "Hit from cloudfront"
_AGE: Final = re.compile(r"(?:s-maxage|max-age)=(\d+)")


class EdgeCache:
    """What one edge location keeps."""

    def __init__(self, config: Any) -> None:
        stated = config.get("CustomErrorResponses", {}).get("Items", ())
        self._errors = {entry["ErrorCode"]: entry["ErrorCachingMinTTL"] for entry in stated}
        self._kept: dict[tuple[str, str, str], tuple[float, Reply]] = {}
        self._lock = threading.Lock()

    def find(self, behaviour: Any, method: str, path: str) -> Reply | None:
        """An answer that is kept for a request like this."""
        with self._lock:
            until, reply = self._kept.get(_key(behaviour, method, path), (0.0, None))
        if reply is None or time.monotonic() >= until:
            return None
        return reply.with_header("X-Cache", HIT)

    def keep(self, behaviour: Any, method: str, path: str, reply: Reply) -> None:
        """Keeps an answer as long as the behaviour's policy allows."""
        seconds = self._seconds(behaviour, reply)
        if method in ("GET", "HEAD") and seconds > 0:
            with self._lock:
                key = _key(behaviour, method, path)
                self._kept[key] = (time.monotonic() + seconds, reply)

    def _seconds(self, behaviour: Any, reply: Reply) -> int:
        if reply.status in ERRORS:
            return int(self._errors.get(reply.status, ERROR_SECONDS))
        policy = POLICIES[behaviour["CachePolicyId"]]
        control = reply.header("cache-control")
        stated = _AGE.search(control)
        if "no-" in control or "private" in control:
            return policy.minimum
        seconds = int(stated[1]) if stated else policy.default
        return min(max(seconds, policy.minimum), policy.maximum)


def _key(behaviour: Any, method: str, path: str) -> tuple[str, str, str]:
    return behaviour.get("PathPattern", "*"), method, path
