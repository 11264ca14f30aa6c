"""Resolves the host of a provider, and checks that its addresses are public if users chose it."""

from __future__ import annotations

import ipaddress

from mlcore.errors import GatewayCallFailed, InvalidParameterValue
from mlcore.providers.environment import ALLOW_PRIVATE
from mlcore.webhooks import addresses


def checked_address(host: str, *, guarded: bool) -> str:
    """Returns an address of the host, to which the connection must go.

    Args:
        guarded: whether every address of the host must be public.

    Raises:
        GatewayCallFailed: the host has no address, or one that is not allowed; status 502.
    """
    try:
        host_addresses = addresses.resolve_host(host, "gateway upstream")
    except InvalidParameterValue as error:
        raise GatewayCallFailed(502, error.message) from None
    for address in host_addresses if guarded else ():
        if not addresses.is_public(address):
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
