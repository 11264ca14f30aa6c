"""Checks the URLs of webhooks and of model providers, and chooses the one address to connect to.

A name is resolved once, all of its addresses must be public, and the connection uses an address
that was checked. A name that resolves differently the next time (DNS rebinding) therefore has no
effect.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from mlcore.errors import InvalidParameterValue
from mlcore.public_addresses import Address, is_public, resolve_host
from mlcore.webhooks.environment import webhook_settings


class CheckedAddress(NamedTuple):
    """The target of a request: the parts of its URL, and one checked address of its host."""

    scheme: str
    host: str
    """The name for TLS and the Host header."""
    address: str
    port: int
    target: str
    """The path and query of the URL."""
    credentials: tuple[str, str] | None
    """User and password of the URL."""

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = {"http": 80, "https": 443}.get(self.scheme)
        return host if self.port == standard else f"{host}:{self.port}"


def check_url(url: str) -> None:
    """Checks a webhook's URL by MLflow's rules, in its order and with its messages. Raises
    InvalidParameterValue if the URL has a scheme that is not allowed, no host, or leads to a
    private network."""
    _checked_url(url)


def destination(url: str) -> CheckedAddress:
    """Checks the URL of a webhook again when a request is sent to it, and resolves it to the
    address to connect to.

    Raises:
        InvalidParameterValue: as :func:`check_url`.
    """
    parts, host, addresses = _checked_url(url)
    if not addresses:
        addresses = resolve_host(host)
    try:
        port = parts.port or {"http": 80}.get(parts.scheme, 443)
        name = host if ":" in host else host.encode("idna").decode()
    except ValueError as error:
        raise InvalidParameterValue(f"Invalid webhook URL {url!r}: {error!r}") from None
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    if parts.query:
        target += "?" + quote(parts.query, safe="/%:@!$&'()*+,;=~?[]")
    credentials = None
    if parts.username is not None:
        credentials = unquote(parts.username), unquote(parts.password or "")
    return CheckedAddress(parts.scheme, name, str(addresses[0]), port, target, credentials)


def _checked_url(url: str) -> tuple[SplitResult, str, list[Address]]:
    """Checks a URL and returns its parts, its host and the addresses of the host. If private
    addresses are allowed, the host is not resolved and no addresses are returned."""
    if not url.strip():
        raise InvalidParameterValue(f"Webhook URL cannot be empty or just whitespace: {url!r}")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidParameterValue(f"Invalid webhook URL {url!r}: {error!r}") from None
    settings = webhook_settings()
    host = parts.hostname
    if parts.scheme not in settings.allowed_schemes:
        if settings.allow_loopback and parts.scheme == "http" and host:
            addresses = _loopback_only(host)
            if addresses:
                return parts, host, addresses
        raise InvalidParameterValue(
            f"Invalid webhook URL scheme: {parts.scheme!r}. "
            f"Allowed schemes are: {', '.join(settings.allowed_schemes)}."
        )
    if not host:
        raise InvalidParameterValue(f"Webhook URL must include a hostname: {url!r}")
    if settings.allow_private_addresses:
        return parts, host, []
    addresses = resolve_host(host)
    for address in addresses:
        if not is_public(address):
            raise InvalidParameterValue(
                "Webhook URL must not resolve to a non-public IP address. "
                f"{host!r} resolves to {address}."
            )
    return parts, host, addresses


def _loopback_only(host: str) -> list[Address]:
    """Returns the addresses of a host if all of them are loopback addresses; otherwise none."""
    try:
        addresses = resolve_host(host)
    except InvalidParameterValue:
        return []
    return addresses if all(address.is_loopback for address in addresses) else []
