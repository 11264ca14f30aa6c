"""Checks URLs of OpenID Connect issuers: those in settings, and those in the configuration that an
issuer publishes."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

_THIS_MACHINE: Final = frozenset(("127.0.0.1", "localhost"))


def is_safe(url: str) -> bool:
    """Whether a URL is HTTPS, or plain HTTP to this machine (localhost)."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme == "http":
        return parts.hostname in _THIS_MACHINE
    return parts.scheme == "https" and bool(parts.hostname)
