"""Reads JSON documents of an OpenID Connect issuer over HTTPS, with limits on time and size."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from mlcore.auth.issuer_addresses import is_safe
from mlcore.wire.json_text import load_json

TIMEOUT_SECONDS: Final = 3.0
MAXIMUM_BYTES: Final = 262_144

_DISCOVERY: Final = "/.well-known/openid-configuration"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An urllib handler that refuses redirects: documents come only from the address that the
    issuer names."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


_opener: Final = urllib.request.build_opener(_NoRedirect)


def configuration_of(issuer: str) -> dict[str, Any]:
    """Returns an issuer's configuration (OpenID Connect Discovery).

    Raises:
        OSError: it cannot be fetched.
        ValueError: as :func:`fetch_json`, or it belongs to another issuer.
    """
    configuration = fetch_json(f"{issuer.rstrip('/')}{_DISCOVERY}")
    if configuration.get("issuer") != issuer:
        raise ValueError("the configuration belongs to another issuer")
    return configuration


def fetch_json(
    url: str, headers: Mapping[str, str] | None = None, form: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns the JSON object at a URL.

    Args:
        form: fields to send by POST; None for a GET.

    Raises:
        OSError: the server does not answer, or not with success, or not in HTTP.
        ValueError: the URL is not HTTPS (plain HTTP only to this machine), or the answer is too
            large, nested too deeply or no JSON object.
    """
    if not is_safe(url):
        raise ValueError("documents of an issuer are fetched over HTTPS only")
    data = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(  # noqa: S310 -- the scheme was checked
        url, data, {"Accept": "application/json", **(headers or {})}
    )
    try:
        with _opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            text = response.read(MAXIMUM_BYTES + 1)
    except http.client.HTTPException as error:
        raise OSError(f"the answer is no HTTP response: {error!r}") from error
    if len(text) > MAXIMUM_BYTES:
        raise ValueError("the document is too large")
    document = load_json(text)
    if not isinstance(document, dict):
        raise ValueError("the document is not a JSON object")
    return document
