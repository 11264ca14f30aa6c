"""Which icons may be written: their address is one of the open internet's, as MLflow demands it. No
icon is ever fetched from here."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from typing import Any, Final

from mlcore.errors import InvalidParameterValue
from mlcore.limits import mcp_servers as limits
from mlcore.webhooks.addresses import check_public_url, schemes_in
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
    host = check_public_url(
        url,
        _WHAT,
        schemes_in(os.environ.get("MLFLOW_ICON_URL_ALLOWED_SCHEMES", "")),
        private=os.environ.get("MLFLOW_ICON_URL_ALLOW_PRIVATE_IPS", "").lower() in ("true", "1"),
    )
    _check_allowed(host)


def _check_allowed(host: str) -> None:
    domains = _listed("MLFLOW_ICON_URL_ALLOWED_DOMAINS")
    if domains and not any(fnmatch(host.lower(), pattern.lower()) for pattern in domains):
        raise InvalidParameterValue(
            f"{_WHAT} host {host!r} is not in the allowed domain list: {', '.join(domains)}."
        )


def _listed(variable: str) -> list[str]:
    return [word.strip() for word in os.environ.get(variable, "").split(",") if word.strip()]
