"""Completes a sign-in: checks the issuer's answer and starts a browser session."""

from __future__ import annotations

import contextlib
import hmac
import re
import secrets
import urllib.error
from typing import Any, Final

from mlcore.auth.claims import values_of
from mlcore.entities.users import Account, Session
from mlcore.errors import MlflowError, PermissionDenied
from mlcore.http import Request, Response
from mlcore.observability import logger
from mlcore.oidc.tokens import MAXIMUM_NAME, username_of
from mlcore.repos.settings import sign_in as settings
from mlcore.repos.users import sessions, sign_in_accounts, users
from mlcore.repos.users.claim_roles import e_mail_domain, rights_of
from mlcore.sign_in import cookie_headers, cookies, session_lifetime
from signin import issuers, pages
from signin.addresses import base_url, callback_address, cookie_name
from signin.code_exchange import Proof, SignInRefused, exchange
from signin.issuers import Issuer
from signin.logout import HINT
from signin.messages import Answer
from signin.start import SignInAttempt

MAXIMUM_CODE: Final = 4_096
MAXIMUM_HINT: Final = 2_400
"""The most characters of an ID token that a session stores for the logout. Each request reads the
session's item, so it must stay small."""

_ERROR: Final = re.compile("[a-z_]{1,60}")
_CLIENT_ERRORS: Final = range(400, 500)


class MayNotSignIn(Exception):
    """Raised if a person may not sign in, because the person's username is that of a service
    account, or because the company's directory (through SCIM) has deactivated or just deleted the
    user, or provisions the name in another spelling. The message is shown to the person."""


def finish(message: Answer, request: Request) -> Response:
    """Handles the request with which the OpenID Connect issuer sends the browser back. On success
    redirects to the page from which the sign-in began, with the cookie of a new session; otherwise
    shows a page that says so; the log has the reason. In both cases the sign-in attempt's cookie is
    removed."""
    base = base_url(request.headers)
    over = cookie_headers.remove_cookie(cookie_name(cookie_headers.SIGN_IN, base))
    try:
        attempt, issuer = _attempt(message, base)
        if "error" in message.fields:
            error = message.fields["error"]
            raise SignInRefused(
                f"the issuer says {error if _ERROR.fullmatch(error) else 'an error'}"
            )
        proof = exchange(
            issuer,
            issuers.endpoints_of(issuer),
            code=message.fields["code"],
            verifier=attempt.verifier,
            nonce=attempt.nonce,
            address=callback_address(base, issuer.name),
        )
        session = _session(issuer, proof)
    except sign_in_accounts.OtherAccount:
        logger.warning("a sign-in was refused", extra={"reason": "the name has another account"})
        reason = "Another account already signs in with your username. Ask an administrator."
        return pages.refused(403, reason, over)
    except MayNotSignIn as error:
        logger.warning("a sign-in was refused", extra={"reason": str(error.__cause__)})
        return pages.refused(403, str(error), over)
    except SignInRefused as error:
        return _refused(str(error), over)
    except urllib.error.HTTPError as error:
        if error.code in _CLIENT_ERRORS:
            return _refused(f"the token endpoint answers {error.code}", over)
        return _unavailable(error, over)
    except (OSError, ValueError, MlflowError) as error:
        return _unavailable(error, over)
    _end_former(message)
    name = cookie_name(cookie_headers.SESSION, base)
    value = cookies.seal([session.username, session.session_id], name)
    if len(value) > cookies.MAXIMUM_COOKIE:
        return _refused("the user's name is too long for a cookie", over)
    sessions.start(session)
    cookie = cookie_headers.set_cookie(name, value, session.expires_at - session.started_at)
    return pages.redirect(attempt.return_to, cookie, over)._replace(actor=session.username)


def _refused(reason: str, over: str) -> Response:
    logger.info("a sign-in was refused", extra={"reason": reason})
    return pages.refused(400, "The sign-in was not completed, or it took too long.", over)


def _unavailable(error: Exception, over: str) -> Response:
    logger.warning("a sign-in failed", extra={"reason": type(error).__name__})
    return pages.refused(503, "Your identity provider does not respond. Try again later.", over)


def _attempt(message: Answer, base: str) -> tuple[SignInAttempt, Issuer]:
    """Returns the sign-in attempt that this browser began and to which the issuer's answer belongs,
    and the issuer. Raises SignInRefused if there is none."""
    name = cookie_name(cookie_headers.SIGN_IN, base)
    values = message.attempts.get(name, [])
    content: Any = cookies.open_only(values, name)
    if content is None:
        raise SignInRefused("this browser began no sign-in")
    attempt = SignInAttempt(*content)
    state = message.fields.get("state", "")
    if not hmac.compare_digest(state.encode(), attempt.state.encode()):
        raise SignInRefused("the state is that of another sign-in")
    if issuers.now() >= attempt.expires_at:
        raise SignInRefused("the sign-in took too long")
    issuer = issuers.find_all().get(attempt.issuer)
    if issuer is None or issuer.issuer != attempt.issuer_url or message.issuer != attempt.issuer:
        raise SignInRefused("the answer comes from another issuer")
    named = message.fields.get("iss")
    if named is None and issuers.endpoints_of(issuer).names_itself:
        raise SignInRefused("the answer does not name its issuer")
    if named is not None and named != issuer.issuer:
        raise SignInRefused("the answer names another issuer")
    if "error" not in message.fields and not (
        0 < len(message.fields.get("code", "")) <= MAXIMUM_CODE
    ):
        raise SignInRefused("the answer has no code")
    return attempt, issuer


def _session(issuer: Issuer, proof: Proof) -> Session:
    """Returns a new session of the person whom the issuer names. Creates a missing user, and
    assigns the roles that the person's groups give.

    Raises:
        SignInRefused: the claims name no person who may sign in.
        OtherAccount: the username belongs to another account.
        MayNotSignIn: the username is that of a service account, or a directory has deactivated the
            user.
    """
    username = username_of(proof.claims, issuer.username_claim)
    subject = proof.claims.get(issuer.subject_claim)
    if username is None or not isinstance(subject, str) or not 0 < len(subject) <= MAXIMUM_NAME:
        raise SignInRefused("the claims name no user")
    domain = e_mail_domain({**proof.claims, "email": username})
    if issuer.domains and domain not in issuer.domains:
        raise SignInRefused("the issuer may not speak for this user")
    rights = rights_of(proof.claims, issuer.name, settings.role_rules())
    try:
        user = users.ensure(username)
    except users.Deactivated as error:
        raise MayNotSignIn("Your company's directory has deactivated your account here.") from error
    except PermissionDenied as error:
        text = "Your username belongs to a service account, which can use API keys only."
        raise MayNotSignIn(text) from error
    profile = users.get_profile(username)
    sign_in_accounts.apply(profile, Account(issuer.issuer, subject), rights.role_ids)
    groups = values_of(proof.claims, issuer.groups_claim)
    now = issuers.now()
    has_room = len(proof.id_token) <= MAXIMUM_HINT
    return Session(
        secrets.token_urlsafe(32),
        username,
        user.user_id,
        issuer.issuer,
        rights.is_admin or (bool(issuer.administrators) and issuer.administrators in groups),
        now,
        now,
        now + session_lifetime.longest_seconds(),
        cookies.seal(proof.id_token, HINT) if has_room else "",
    )


def _end_former(message: Answer) -> None:
    """Ends the session that the browser had before this sign-in, even if it is another user's."""
    for name, values in message.sessions.items():
        for value in values[:2]:
            with contextlib.suppress(MlflowError):
                content = cookies.open_sealed(value, name)
                if content is not None:
                    sessions.end(*content)
