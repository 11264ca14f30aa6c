"""Resolves a model provider's host, and checks that a host users chose has public addresses."""

from __future__ import annotations

import ipaddress
import time
from typing import Final, NamedTuple

from mlcore import public_addresses
from mlcore.errors import GatewayCallFailed, InvalidParameterValue
from mlcore.process_cache import ProcessCache
from mlcore.providers.environment import ALLOW_PRIVATE
from mlcore.public_addresses import Address

RESOLVED_SECONDS: Final = 10.0
"""How long the addresses of a name are used. Names of large providers resolve to another address
each time, which would leave the kept connections unused. Private addresses are refused at each use,
so a name that resolves differently the next time (DNS rebinding) has no effect."""


class _Resolved(NamedTuple):
    addresses: list[Address]
    wall: float

    def is_fresh(self) -> bool:
        """Whether the entry is fresh by the wall clock, too. The cache uses the monotonic clock,
        which may stop while the function is frozen; meanwhile the address may have a new owner."""
        return 0 <= time.time() - self.wall <= RESOLVED_SECONDS


_resolved: ProcessCache[str, _Resolved] = ProcessCache(
    "addresses of a provider",
    seconds=RESOLVED_SECONDS,
    weigh=lambda resolved: 100 * len(resolved.addresses),
)


def checked_address(host: str, *, guarded: bool) -> str:
    """Returns an address of the host, to which the connection must go.

    Args:
        guarded: whether every address of the host must be public.

    Raises:
        GatewayCallFailed: the host has no address, or one that is not allowed; status 502.
    """
    host_addresses = _addresses_of(host)
    for address in host_addresses if guarded else ():
        if not public_addresses.is_public(address):
            raise GatewayCallFailed(
                502,
                f"Gateway upstream connection blocked: {host!r} resolves to {address}, which is "
                f"not a public IP address. Set {ALLOW_PRIVATE}=true to allow private upstreams.",
            )
    if guarded and _is_ambiguous_literal(host):
        raise GatewayCallFailed(
            502, f"Gateway upstream host {host!r} is not a canonical IP address literal."
        )
    return str(host_addresses[0])


def forget_addresses(host: str) -> None:
    """Removes the cached IP addresses of a provider's host after a call got no answer, so that the
    next call resolves the host again."""
    _resolved.pop(host)


def _addresses_of(host: str) -> list[Address]:
    resolved = _resolved.get(host)
    if resolved is None or not resolved.is_fresh():
        began = time.time()
        try:
            resolved = _Resolved(public_addresses.resolve_host(host, "gateway upstream"), began)
        except InvalidParameterValue as error:
            raise GatewayCallFailed(502, error.message) from None
        _resolved.put(host, resolved)
    return resolved.addresses


def _is_ambiguous_literal(host: str) -> bool:
    """Whether a host consists of digits and dots but is not a canonical address. Programs interpret
    such hosts differently."""
    if not host.replace(".", "").isdigit():
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False
