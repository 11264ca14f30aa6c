"""Checks that addresses and the hosts of URLs are on the public internet: those of webhooks, icons
and model providers."""

from __future__ import annotations

import ipaddress
import socket
import threading
from typing import Final
from urllib.parse import urlsplit

from mlcore.errors import InvalidParameterValue

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
    """Returns the URL schemes in a setting's comma-separated text; of an empty one ``https``."""
    schemes = sorted({scheme.strip().lower() for scheme in text.split(",") if scheme.strip()})
    return schemes or ["https"]
