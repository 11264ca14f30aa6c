"""What CloudFront answers a viewer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """All but Set-Cookie, which alone may be there several times."""
    content: bytes
    cookies: tuple[str, ...] = ()
    """Values of Set-Cookie."""

    def header(self, name: str) -> str:
        """A header by its name in lower case; "" without one."""
        return next((value for key, value in self.headers.items() if key.lower() == name), "")

    def with_header(self, name: str, value: str) -> Reply:
        return self._replace(headers={**self.headers, name: value})
