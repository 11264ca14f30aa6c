"""A server in front of the product that counts the bytes of bodies, and refuses what Lambda would
refuse."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.e2e.forwarding_proxy import Passage, Refusal, forwarding

MOST_BYTES = 6 * 1024 * 1024 * 3 // 4
"""A body of Lambda's limit, which arrives as Base64."""


class Meter:
    """What went by."""

    def __init__(self) -> None:
        self.url = ""
        self.passages: list[Passage] = []

    @property
    def size(self) -> int:
        """Bytes of all bodies."""
        return sum(passage.size for passage in self.passages)

    def paths(self, method: str, prefix: str) -> list[str]:
        return [
            passage.path
            for passage in self.passages
            if passage.method == method and passage.path.startswith(prefix)
        ]


@contextlib.contextmanager
def metering(url: str) -> Iterator[Meter]:
    """A meter in front of the server at this URL."""
    meter = Meter()
    with forwarding(url, _too_large, meter.passages.append) as meter.url:
        yield meter


def _too_large(_path: str, body: bytes) -> Refusal | None:
    if len(body) <= MOST_BYTES:
        return None
    return 413, b'{"message": "Request Entity Too Large"}'
