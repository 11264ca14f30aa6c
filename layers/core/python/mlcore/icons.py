"""Reads the icons of MCP servers and skills in requests. As on MLflow's server, an icon's URL must
be on the public internet, unless a setting allows private addresses. This server never fetches
icons."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from typing import Any, Final

from mlcore.errors import InvalidParameterValue
from mlcore.public_addresses import check_public_url, parse_schemes
from mlcore.wire import json_body

MAX_ICONS: Final = 100

_NOUN: Final = "Icon URL"


def _source_of(value: Any, path: json_body.JsonPath, misfits: json_body.Misfits) -> Any:
    """Reads the URL of an icon. Raises InvalidParameterValue at once, before other errors of the
    body, for a URL that is not allowed."""
    errors_before = len(misfits.texts)
    text = json_body.text(value, path, misfits)
    if len(misfits.texts) == errors_before:
        check_url(text)
    return text


def _media_type_of(value: Any, path: json_body.JsonPath, misfits: json_body.Misfits) -> Any:
    if value is None:
        return None
    errors_before = len(misfits.texts)
    text = json_body.text(value, path, misfits)
    return _media_type(text) if len(misfits.texts) == errors_before else text


def check_url(url: str) -> None:
    """Checks the URL of an icon of a skill or MCP server by MLflow's rules, in MLflow's order and
    with its messages and its three environment variables.

    Raises:
        InvalidParameterValue: the URL is not allowed.
    """
    host = check_public_url(
        url,
        _NOUN,
        parse_schemes(os.environ.get("MLFLOW_ICON_URL_ALLOWED_SCHEMES", "")),
        private=os.environ.get("MLFLOW_ICON_URL_ALLOW_PRIVATE_IPS", "").lower() in ("true", "1"),
    )
    _check_allowed(host)


def _media_type(mime_type: str) -> str:
    """Returns the media type of an icon in lower case. Raises InvalidParameterValue if it is not an
    image type."""
    normal = mime_type.strip().lower()
    if not normal.startswith("image/") or normal == "image/":
        raise InvalidParameterValue(
            f"Invalid icon mimeType {mime_type!r}. Allowed values must use the 'image/*' "
            "media type."
        )
    return normal


def _check_allowed(host: str) -> None:
    domains = _listed("MLFLOW_ICON_URL_ALLOWED_DOMAINS")
    if domains and not any(fnmatch(host.lower(), pattern.lower()) for pattern in domains):
        raise InvalidParameterValue(
            f"{_NOUN} host {host!r} is not in the allowed domain list: {', '.join(domains)}."
        )


def _listed(variable: str) -> list[str]:
    return [word.strip() for word in os.environ.get(variable, "").split(",") if word.strip()]


_TEXT: Final = json_body.optional(json_body.text)
_ICON: Final = json_body.object_of(
    {
        "src": json_body.JsonField(_source_of, required=True),
        "sizes": json_body.JsonField(json_body.optional(json_body.list_of(json_body.text))),
        "mimeType": json_body.JsonField(_media_type_of),
        "theme": json_body.JsonField(_TEXT),
    },
    extra=True,
)


def _icon(value: Any, path: json_body.JsonPath, misfits: json_body.Misfits) -> Any:
    """Reads an icon; drops those of its known fields that are null."""
    icon = _ICON(value, path, misfits)
    if not isinstance(icon, dict):
        return icon
    optional_fields = ("sizes", "mimeType", "theme", "source")
    return {
        key: item for key, item in icon.items() if key not in optional_fields or item is not None
    }


ICONS: Final = json_body.optional(json_body.list_of(_icon, MAX_ICONS))
"""Reads the list of icons of a request, or null."""
