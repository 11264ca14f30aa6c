"""Checks the URLs of webhooks and of model providers, and chooses the one address to connect to.

A name is resolved once, all of its addresses must be public, and the connection uses an address
that was checked. A name that resolves differently the next time (DNS rebinding) therefore has no
effect.
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

_WITH_IPV4: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks (NAT64, IPv4-compatible and IPv4-translated) whose addresses end in an IPv4
address."""
_NOT_PUBLIC_V4: Final = tuple(map(ipaddress.IPv4Network, ("192.0.0.0/24", "192.88.99.0/24")))
_NOT_PUBLIC_V6: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "100::/64", "3fff::/20", "5f00::/16"))
)
"""Special networks that old versions of Python consider public. For example, a cloud serves its
metadata at 192.0.0.192, and 64:ff9b:1::/48 is for a network's own NAT64."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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


def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet. For an IPv6 address that embeds an IPv4
    address, the embedded one decides."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.is_site_local or address.scope_id:
            return False
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is None and any(address in network for network in _WITH_IPV4):
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            return is_public(embedded)
        if any(address in network for network in _NOT_PUBLIC_V6):
            return False
    elif any(address in network for network in _NOT_PUBLIC_V4):
        return False
    return address.is_global and not address.is_multicast


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


def resolve_host(host: str, noun: str = "Webhook URL") -> list[Address]:
    """Returns the addresses of a host, IPv4 first, since most functions have no route for IPv6.

    Args:
        noun: the noun in error messages, e.g. ``Webhook URL``.

    Raises:
        InvalidParameterValue: the host has no address, or resolving takes more than 5 s.
    """
    if literal := _literal(host):
        return [literal]
    addresses: list[Address] = []
    failed: list[Exception] = []

    def resolve() -> None:
        try:
            for answer in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                address = ipaddress.ip_address(answer[4][0])
                if address not in addresses:
                    addresses.append(address)
        except (OSError, ValueError) as error:  # UnicodeError is a ValueError
            failed.append(error)

    thread = threading.Thread(target=resolve, daemon=True, name="webhook-name")
    thread.start()
    thread.join(RESOLVE_SECONDS)
    if thread.is_alive():
        raise InvalidParameterValue(
            f"Timed out resolving {noun} hostname {host!r} after {RESOLVE_SECONDS:g} seconds"
        )
    if failed:
        raise InvalidParameterValue(f"Cannot resolve {noun} hostname {host!r}: {failed[0]}")
    return sorted(addresses, key=lambda address: address.version)


def _literal(host: str) -> Address | None:
    """Returns the address if the host is an address literal in canonical form; None for a name and
    for an address with a zone, which a resolver must read."""
    if "%" in host:
        return None
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def check_public_url(url: str, noun: str, schemes: list[str], *, private: bool = False) -> str:
    """Checks a URL that is neither a webhook's nor this server's, such as that of an icon, by
    MLflow's rules, in its order and with its messages.

    Args:
        noun: the noun in error messages.
        schemes: allowed schemes, sorted, in lower case.
        private: whether addresses of private networks are allowed.

    Returns:
        The host.

    Raises:
        InvalidParameterValue: the URL has a scheme that is not allowed, embeds credentials, has no
            host, or leads to a private network.
    """
    if not url.strip():
        raise InvalidParameterValue(f"{noun} cannot be empty or just whitespace: {url!r}")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise InvalidParameterValue(f"Invalid {noun} {url!r}: {error!r}") from None
    if parts.scheme not in schemes:
        raise InvalidParameterValue(
            f"Invalid {noun} scheme: {parts.scheme!r}. Allowed schemes are: "
            f"{', '.join(map(repr, schemes))}."
        )
    if parts.username or parts.password:
        raise InvalidParameterValue(f"{noun} must not include embedded credentials: {url!r}")
    if not host:
        raise InvalidParameterValue(f"{noun} must include a hostname: {url!r}")
    _check_address_literal(host, noun)
    if not private:
        for address in resolve_host(host, noun):
            if not is_public(address):
                raise InvalidParameterValue(
                    f"{noun} must not resolve to a non-public IP address. "
                    f"{host!r} resolves to {address}."
                )
    return host


def _check_address_literal(host: str, noun: str) -> None:
    """Refuses numeric hosts that are not canonical addresses, since programs interpret them
    differently."""
    if ":" not in host and not host.replace(".", "").isdigit():
        return
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise InvalidParameterValue(
            f"{noun} host {host!r} is not a canonical IP address literal."
        ) from None


def parse_schemes(text: str) -> list[str]:
    """Returns the schemes in a comma-separated setting; ``https`` alone if it is empty."""
    schemes = sorted({scheme.strip().lower() for scheme in text.split(",") if scheme.strip()})
    return schemes or ["https"]
