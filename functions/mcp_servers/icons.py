"""Which icons may be written: their address is one of the open internet's, as MLflow demands it. No
icon is ever fetched from here."""

from __future__ import annotations

import ipaddress
import os
from fnmatch import fnmatch
from typing import Any, Final
from urllib.parse import urlsplit

from mlcore.errors import InvalidParameterValue
from mlcore.limits import mcp_servers as limits
from mlcore.webhooks.addresses import is_public, resolved_addresses
from mlcore.wire import json_body

_WHAT: Final = "Icon URL"


def source_of(value: Any, place: json_body.Place, misfits: json_body.Misfits) -> Any:
    """The address of an icon. Raises InvalidParameterValue, before anything else is told."""
    noted = len(misfits.texts)
    text = json_body.text(value, place, misfits)
    if len(misfits.texts) == noted:
        check_url(text)
    return text


def media_type_of(value: Any, place: json_body.Place, misfits: json_body.Misfits) -> Any:
    if value is None:
        return None
    noted = len(misfits.texts)
    text = json_body.text(value, place, misfits)
    return limits.media_type(text) if len(misfits.texts) == noted else text


def check_url(url: str) -> None:
    """MLflow's rules, in its order and with its messages; its three environment variables hold.

    Raises:
        InvalidParameterValue: no icon may be there.
    """
    if not url.strip():
        raise InvalidParameterValue(f"{_WHAT} cannot be empty or just whitespace: {url!r}")
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise InvalidParameterValue(f"Invalid {_WHAT} {url!r}: {error!r}") from None
    schemes = sorted({scheme.lower() for scheme in _listed("MLFLOW_ICON_URL_ALLOWED_SCHEMES")})
    schemes = schemes or ["https"]
    if parts.scheme not in schemes:
        raise InvalidParameterValue(
            f"Invalid {_WHAT} scheme: {parts.scheme!r}. Allowed schemes are: "
            f"{', '.join(map(repr, schemes))}."
        )
    if parts.username or parts.password:
        raise InvalidParameterValue(f"{_WHAT} must not include embedded credentials: {url!r}")
    if not host:
        raise InvalidParameterValue(f"{_WHAT} must include a hostname: {url!r}")
    _check_literal(host)
    if os.environ.get("MLFLOW_ICON_URL_ALLOW_PRIVATE_IPS", "").lower() not in ("true", "1"):
        _check_public(host)
    _check_allowed(host)


def _check_literal(host: str) -> None:
    """Numbers that are not written as addresses mean different ones to different readers."""
    if ":" not in host and not host.replace(".", "").isdigit():
        return
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise InvalidParameterValue(
            f"{_WHAT} host {host!r} is not a canonical IP address literal."
        ) from None


def _check_public(host: str) -> None:
    for address in resolved_addresses(host, _WHAT):
        if not is_public(address):
            raise InvalidParameterValue(
                f"{_WHAT} must not resolve to a non-public IP address. "
                f"{host!r} resolves to {address}."
            )


def _check_allowed(host: str) -> None:
    domains = _listed("MLFLOW_ICON_URL_ALLOWED_DOMAINS")
    if domains and not any(fnmatch(host.lower(), pattern.lower()) for pattern in domains):
        raise InvalidParameterValue(
            f"{_WHAT} host {host!r} is not in the allowed domain list: {', '.join(domains)}."
        )


def _listed(variable: str) -> list[str]:
    return [word.strip() for word in os.environ.get(variable, "").split(",") if word.strip()]
