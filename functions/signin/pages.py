"""The HTML pages of sign-in. They are small, have no scripts and are never cached."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from mlcore.http import Response
from signin.addresses import HOME, LOGIN, LOGOUT

if TYPE_CHECKING:
    from signin.issuers import Issuer

_HTML: Final = "text/html; charset=utf-8"
HEADERS: Final = MappingProxyType(
    {
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
        "form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    }
)
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} - MLflow</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:32em;padding:0 1em}}
a{{display:block;margin:.5em 0;padding:.6em 1em;border:1px solid #0b7fad;
border-radius:4px;color:#0b6a91;text-decoration:none;text-align:center}}</style></head>
<body><h1>{title}</h1>
{content}
</body>
</html>
"""


def page(status: int, title: str, content: str, *set_cookies: str) -> Response:
    """Returns a response with an HTML page of the sign-in. Title and content are HTML."""
    text = _PAGE.format(title=title, content=content)
    return Response(status, text, _HTML, HEADERS, set_cookies)


def refused(status: int, reason: str, *set_cookies: str) -> Response:
    """Returns the page that says why the sign-in failed. ``reason`` is plain text."""
    again = f'<p>{escape(reason)}</p>\n<a href="{LOGIN}">Sign in again</a>'
    return page(status, "You are not signed in", again, *set_cookies)


def redirect(location: str, *set_cookies: str) -> Response:
    """Returns a redirect (302) to ``location``."""
    return Response(302, "", _HTML, {**HEADERS, "location": location}, set_cookies)


def choice(issuers: Iterable[Issuer], return_to: str) -> Response:
    """Returns the page on which people choose an issuer to sign in with."""
    links = [
        f'<a href="{LOGIN}?{escape(urlencode({"issuer": issuer.name, "return": return_to}))}">'
        f"{escape(issuer.title)}</a>"
        for issuer in issuers
    ]
    return page(200, "Sign in", "\n".join(links))


def signed_out(*set_cookies: str) -> Response:
    """Returns the page that says that the user is signed out."""
    return page(200, "You are signed out", f'<a href="{LOGIN}">Sign in</a>', *set_cookies)


def confirm_logout() -> Response:
    """Returns the page that asks for confirmation of a logout, for browsers that another site sent
    here."""
    content = f'<a href="{LOGOUT}">Sign out</a>\n<a href="{HOME}">Stay signed in</a>'
    return page(200, "Sign out?", content)
