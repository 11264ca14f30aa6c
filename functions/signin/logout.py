"""Signs a user out: ends the browser session on this server, and the session at the issuer."""

from __future__ import annotations

from typing import Final

from mlcore.entities.users import Session
from mlcore.http import Request, Response
from mlcore.observability import logger
from mlcore.repos.users import sessions
from mlcore.sign_in import cookie_headers, cookies
from signin import issuers, pages
from signin.addresses import LOGOUT, base_url, cookie_name, with_query
from signin.messages import Leave

HINT: Final = "hint of a session"
"""The purpose for which the ID token that a session stores for its logout is sealed."""


def leave(message: Leave, request: Request) -> Response:
    """Ends the browser's session and redirects to the issuer's logout page, which sends the browser
    back to this server. Without a session or such a page, shows that the user is signed out. A
    browser that another site sent here is first asked for confirmation."""
    base = base_url(request.headers)
    name = cookie_name(cookie_headers.SESSION, base)
    values = [] if message.is_over else message.sessions[name]
    content = cookies.open_only(values, name)
    gone = cookie_headers.remove_cookie(name)
    if content is None:
        return pages.signed_out(*(() if message.is_over else (gone,)))
    if request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site"):
        return pages.confirm_logout()
    user, session = sessions.find(*content)
    sessions.end(*content)
    if user is None or session is None:
        return pages.signed_out(gone)
    return _to_issuer(session, base, gone)._replace(actor=user.username)


def hint_of(session: Session) -> str:
    """Returns the ID token with which the issuer recognizes a session at logout; "" if none was
    stored."""
    return str((session.hint and cookies.open_sealed(session.hint, HINT)) or "")


def _to_issuer(session: Session, base: str, gone: str) -> Response:
    """Redirects to the issuer's logout page. If the issuer has none, shows the page that says that
    the user is signed out."""
    issuer = next(
        (
            configured
            for configured in issuers.find_all().values()
            if configured.issuer == session.issuer
        ),
        None,
    )
    try:
        address = "" if issuer is None else issuers.endpoints_of(issuer).end_session
    except (OSError, ValueError) as error:
        logger.warning("the issuer's configuration is unusable", extra={"reason": str(error)})
        address = ""
    if issuer is None or not address:
        return pages.signed_out(gone)
    back = f"{base}{LOGOUT}?done"
    query = {"client_id": issuer.client_id, "post_logout_redirect_uri": back}
    # The same return address under Amazon Cognito's name.
    query["logout_uri"] = back
    hint = hint_of(session)
    if hint:
        query["id_token_hint"] = hint
    return pages.redirect(with_query(address, query), gone)
