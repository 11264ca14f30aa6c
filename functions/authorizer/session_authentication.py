"""Authenticates browsers by the session cookie that they got at their sign-in.

Each call with a valid cookie reads the user and the session, so a deleted user, an ended session
and a changed user take effect at once. A browser's request that changes data must come from a page
of this server.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from mlcore.entities.users import User
from mlcore.http.raw_request import cookie_values
from mlcore.repos.users import sessions
from mlcore.sign_in import cookie_headers, cookies, session_lifetime

_READING: Final = frozenset(("GET", "HEAD", "OPTIONS"))


def authenticate(event: Mapping[str, Any], headers: Mapping[str, str]) -> User | None:
    """Returns the user who is signed in in the browser that sent a request, or None."""
    method = event["requestContext"]["http"]["method"]
    if method not in _READING and not _is_own_page(headers):
        return None
    content = _content(event)
    if content is None:
        return None
    user, session = sessions.find(*content)
    now = int(time.time())
    if user is None or session is None or not session_lifetime.is_alive(session, now):
        return None
    if session_lifetime.is_due(session, now):
        sessions.touch(session, now)
    return user._replace(is_admin=user.is_admin or session.is_admin)


def _content(event: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns the username and the session id in the request's session cookie; None if it has no
    valid one."""
    for is_secure in (True, False):
        name = cookie_headers.cookie_name(cookie_headers.SESSION, is_secure=is_secure)
        content = cookies.open_only(cookie_values(event, name), name)
        if content is not None:
            username, session_id = content
            return username, session_id
    return None


def _is_own_page(headers: Mapping[str, str]) -> bool:
    """Whether a request comes from a page of this server, or from a program that is no browser.
    Browsers send ``Sec-Fetch-Site``; older ones ``Origin``."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
    except ValueError:
        return False
