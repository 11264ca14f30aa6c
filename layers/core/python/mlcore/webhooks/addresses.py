"""Which URLs a webhook may have, and the one address that a request to it may connect to.

A name is resolved once, every address it has must be public, and the connection goes to the address
that was looked at: a name that answers differently the next time gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from mlcore.errors import InvalidParameterValue
from mlcore.webhooks.environment import webhook_settings

RESOLVE_SECONDS: Final = 5.0

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Destination(NamedTuple):
    """Where a request goes."""

    scheme: str
    host: str
    """The name for TLS and the Host header."""
    address: str
    port: int
    target: str
    """Path and query."""
    credentials: tuple[str, str] | None
    """User and password of the URL."""

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        standard = {"http": 80, "https": 443}.get(self.scheme)
        return host if self.port == standard else f"{host}:{self.port}"


def check_url(url: str) -> None:
    """MLflow's rules, in its order and with its messages.

    Raises:
        InvalidParameterValue: the URL has another scheme, no host, or leads to a private network.
    """
    _resolved(url)


def destination(url: str) -> Destination:
    """Checks the URL again, at the time of the request.

    Raises:
        InvalidParameterValue: as :func:`check_url`.
    """
    parts, host, addresses = _resolved(url)
    if not addresses:
        addresses = resolved_addresses(host)
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
    return Destination(parts.scheme, name, str(addresses[0]), port, target, credentials)


def is_public(address: Address) -> bool:
    """Whether the address is one of the open internet's, also when it is written in an IPv6 form
    that carries an IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.is_site_local or address.scope_id:
            return False
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is None and (address in _NAT64 or address in _IPV4_COMPATIBLE):
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            return is_public(embedded)
    return address.is_global and not address.is_multicast


def _resolved(url: str) -> tuple[SplitResult, str, list[Address]]:
    """The parts of a URL, its host and, unless any will do, the addresses that were checked."""
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
    addresses = resolved_addresses(host)
    for address in addresses:
        if not is_public(address):
            raise InvalidParameterValue(
                "Webhook URL must not resolve to a non-public IP address. "
                f"{host!r} resolves to {address}."
            )
    return parts, host, addresses


def _loopback_only(host: str) -> list[Address]:
    """The addresses of a host whose every address is this machine's own, else none."""
    try:
        addresses = resolved_addresses(host)
    except InvalidParameterValue:
        return []
    return addresses if all(address.is_loopback for address in addresses) else []


def resolved_addresses(host: str, what: str = "Webhook URL") -> list[Address]:
    """The addresses of a host, IPv4 first: most functions have no route for IPv6.

    Args:
        what: whose host it is, for who is told that it has none.

    Raises:
        InvalidParameterValue: it has none, or none in time.
    """
    found: list[Address] = []
    failed: list[Exception] = []

    def look() -> None:
        try:
            for answer in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                address = ipaddress.ip_address(answer[4][0])
                if address not in found:
                    found.append(address)
        except (OSError, ValueError) as error:  # UnicodeError is a ValueError
            failed.append(error)

    looking = threading.Thread(target=look, daemon=True, name="webhook-name")
    looking.start()
    looking.join(RESOLVE_SECONDS)
    if looking.is_alive():
        raise InvalidParameterValue(
            f"Timed out resolving {what} hostname {host!r} after {RESOLVE_SECONDS:g} seconds"
        )
    if failed:
        raise InvalidParameterValue(f"Cannot resolve {what} hostname {host!r}: {failed[0]}")
    return sorted(found, key=lambda address: address.version)


def check_public_url(url: str, what: str, schemes: list[str], *, private: bool = False) -> str:
    """MLflow's rules for what is neither a webhook nor of this server, in its order and with its
    messages.

    Args:
        what: whose URL it is, for who is told that it will not do.
        schemes: sorted, in lower case.
        private: whether its addresses may be of a private network.

    Returns:
        The host.

    Raises:
        InvalidParameterValue: the URL has another scheme, names a user, has no host, or leads to a
            private network.
    """
    if not url.strip():
        raise InvalidParameterValue(f"{what} cannot be empty or just whitespace: {url!r}")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise InvalidParameterValue(f"Invalid {what} {url!r}: {error!r}") from None
    if parts.scheme not in schemes:
        raise InvalidParameterValue(
            f"Invalid {what} scheme: {parts.scheme!r}. Allowed schemes are: "
            f"{', '.join(map(repr, schemes))}."
        )
    if parts.username or parts.password:
        raise InvalidParameterValue(f"{what} must not include embedded credentials: {url!r}")
    if not host:
        raise InvalidParameterValue(f"{what} must include a hostname: {url!r}")
    _check_literal(host, what)
    if not private:
        for address in resolved_addresses(host, what):
            if not is_public(address):
                raise InvalidParameterValue(
                    f"{what} must not resolve to a non-public IP address. "
                    f"{host!r} resolves to {address}."
                )
    return host


def _check_literal(host: str, what: str) -> None:
    """Numbers that are not written as addresses mean different ones to different readers."""
    if ":" not in host and not host.replace(".", "").isdigit():
        return
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise InvalidParameterValue(
            f"{what} host {host!r} is not a canonical IP address literal."
        ) from None


def schemes_in(text: str) -> list[str]:
    """Of a setting with commas; ``https`` alone where it is empty."""
    found = sorted({scheme.strip().lower() for scheme in text.split(",") if scheme.strip()})
    return found or ["https"]
