"""The addresses of this server as browsers know them, and the addresses that a sign-in may return
to."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from mlcore.errors import InvalidParameterValue
from mlcore.sign_in import cookie_headers

PUBLIC_URL: Final = "PUBLIC_URL"
"""Environment: the server's address, if requests do not have it in their Host header because
CloudFront or another proxy is in front."""

HOME: Final = "/"
LOGIN: Final = "/login"
CALLBACK: Final = "/login/callback"
LOGOUT: Final = "/logout"

MAXIMUM_RETURN: Final = 2_000

_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_RELATIVE: Final = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")


def base_url(headers: Mapping[str, str]) -> str:
    """Returns this server's address without a slash at the end, from PUBLIC_URL or the request's
    Host header. A forged Host header is harmless: issuers return only to addresses that are
    registered with them.

    Raises:
        InvalidParameterValue: the request has no valid Host header.
    """
    configured = os.environ.get(PUBLIC_URL, "")
    if configured:
        return configured.rstrip("/")
    host = headers.get("host", "")
    if not _HOST.fullmatch(host):
        raise InvalidParameterValue("The request has no valid Host header.")
    # API Gateway sets the header; a runner on a laptop has none.
    scheme = "https" if headers.get("x-forwarded-proto", "").startswith("https") else "http"
    return f"{scheme}://{host}"


def cookie_name(cookie: str, base: str) -> str:
    """Returns the full name of a cookie of this server, which depends on whether the address is
    HTTPS."""
    return cookie_headers.cookie_name(cookie, is_secure=base.startswith("https:"))


def return_address(text: str) -> str:
    """Returns the page of this server to show after a sign-in, percent-encoded; the home page for
    an address that leads elsewhere or back to the sign-in."""
    if len(text) > MAXIMUM_RETURN or not _RELATIVE.fullmatch(text):
        return HOME
    try:
        parts = urlsplit(text)
    except ValueError:
        return HOME
    is_own = not (parts.scheme or parts.netloc)
    is_page = parts.path not in (LOGIN, LOGOUT) and not parts.path.startswith(f"{LOGIN}/")
    return quote(text, safe="/?#[]@!$&'()*+,;=:%-._~") if is_own and is_page else HOME


def callback_address(base: str, issuer_name: str) -> str:
    """Returns the URL of this server to which an issuer (OpenID Connect service) sends the browser
    back after a login. Each issuer has its own, so that its answer is not taken for another's."""
    return f"{base}{CALLBACK}/{issuer_name}" if issuer_name else f"{base}{CALLBACK}"


def with_query(address: str, query: Mapping[str, str]) -> str:
    """Returns an OpenID issuer's URL with more query parameters; it may have some already."""
    separator = "&" if "?" in address else "?"
    return f"{address}{separator}{urlencode(query)}"
