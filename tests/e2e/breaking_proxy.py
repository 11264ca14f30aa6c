"""A server in front of another that fails on some paths."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from tests.e2e.forwarding_proxy import Refusal, forwarding


@contextlib.contextmanager
def failing(url: str, endings: Sequence[str]) -> Iterator[str]:
    """The address of a server that answers 500 where a path ends so; all else it passes on."""

    def broken(path: str, _body: bytes) -> Refusal | None:
        ends = path.endswith(tuple(endings))
        return (500, b'{"message": "broken on purpose"}') if ends else None

    with forwarding(url, broken) as address:
        yield address
