"""The Lambda authorizer of the HTTP API: identifies the caller. It refuses only requests that
bypass CloudFront, where the deployment forbids it.

If the authorizer refused an unknown caller, API Gateway would answer ``{"message":"Forbidden"}``
without the challenge that makes a browser ask for a password. So an unknown caller's request is
passed on without a username, and the API function answers 401 with MLflow's text, except at the few
public routes. The authorizer's
context is never empty: by it the API function knows that authentication took place. If a login
could not be checked, the context says so, and the caller is asked to repeat the request.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from authorizer import gateway_keys, key_authentication
from authorizer.caller_address import viewer_address
from mlcore.db import capacity, deadline
from mlcore.entities.users import User
from mlcore.environment import AUTHENTICATION, GATEWAY_LOGIN, OIDC, signs_in
from mlcore.errors import MlflowError
from mlcore.http.cloudfront_bypass import bypasses_cloudfront
from mlcore.http.gate import LOGIN_NOT_CHECKED, TWO_LOGINS
from mlcore.http.request import base_path, headers_of, path_of
from mlcore.http.rest_events import as_http_event, is_rest_event
from mlcore.observability import logger

Authenticate = Callable[[str, str], User | None]
"""Takes an Authorization header and the caller's address; returns the user or None."""

_GATEWAY: Final = "/gateway/"

MAX_SECONDS: Final = 8.0
"""API Gateway waits ten seconds for an authorizer."""


def _choose_method(environment: Mapping[str, str]) -> tuple[str, Authenticate]:
    if environment.get(AUTHENTICATION) == OIDC:
        from authorizer import oidc_authentication  # noqa: PLC0415 -- its library is in a layer of its own

        return OIDC, oidc_authentication.authenticator(environment)
    from authorizer import basic_authentication  # noqa: PLC0415 -- OIDC needs no rights of it

    return "basic", basic_authentication.authenticate


def _choose_sessions(
    environment: Mapping[str, str],
) -> Callable[[Mapping[str, Any], Mapping[str, str]], User | None] | None:
    """Returns the function that authenticates the session cookies of browsers; None if this
    deployment has no sign-in in browsers."""
    if not signs_in(environment):
        return None
    from authorizer import session_authentication  # noqa: PLC0415 -- as above

    return session_authentication.authenticate


_method, _authenticate = _choose_method(os.environ)
_authenticate_session = _choose_sessions(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Authenticates the caller of a request. The context of the answer contains the user if the
    login is valid. An HTTP API sends payload format 2.0 and takes a simple response; a REST API
    sends format 1.0 and takes a policy."""
    if not is_rest_event(event):
        return _authorization(event, context)
    answer = _authorization(as_http_event(event), context)
    return {
        "principalId": "caller",
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Action": "execute-api:Invoke",
                    "Effect": "Allow" if answer["isAuthorized"] else "Deny",
                    "Resource": event["methodArn"],
                }
            ],
        },
        "context": answer.get("context", {}),
    }


def _authorization(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Returns the simple response to an event of payload format 2.0."""
    headers = headers_of(event)
    if bypasses_cloudfront(os.environ, headers):
        return {"isAuthorized": False}
    peer: str = event["requestContext"]["http"].get("sourceIp", "")
    address = viewer_address(peer, headers, os.environ)
    kind, identify = _method_of(event, headers, address)
    context_of_caller: dict[str, Any] = {"method": _method, "address": address, "login": kind}
    with deadline.within(context, MAX_SECONDS), capacity.measure():
        try:
            context_of_caller |= identify()
        except MlflowError as error:
            logger.warning("authentication failed", extra={"error_code": error.error_code})
            if error.status == 429 or error.status >= 500:
                # The table or the issuer's keys cannot be read. The API function answers 429.
                context_of_caller[LOGIN_NOT_CHECKED] = True
    return {"isAuthorized": True, "context": context_of_caller}


def _method_of(
    event: Mapping[str, Any], headers: Mapping[str, str], address: str
) -> tuple[str, Callable[[], dict[str, Any]]]:
    """Chooses how the caller is authenticated. Returns the kind of login, for the audit log, and a
    function that authenticates the caller and returns the fields of the context about the caller
    (no fields for an unknown caller, ``TWO_LOGINS`` for a request with two logins). API keys are
    accepted in addition to the deployment's method; a session cookie is used if the request has no
    other login."""
    login = _login(event, headers)
    try:
        key = _key(event, headers, login)
    except gateway_keys.TwoLogins:
        return "key", lambda: {TWO_LOGINS: True}
    if key is not None:
        return "key", partial(key_authentication.authenticate, *key)
    if _authenticate_session is not None and not login:
        return "session", partial(_caller_fields, partial(_authenticate_session, event, headers))
    kind = ("token" if _method == OIDC else "password") if login else "none"
    return kind, partial(_caller_fields, partial(_authenticate, login, address))


def _key(
    event: Mapping[str, Any], headers: Mapping[str, str], login: str
) -> tuple[str, str] | None:
    """Returns the username ("" if none is sent) and the API key with which the caller logs in; None
    if the request has no API key. Raises TwoLogins for a call of the AI gateway with two different
    logins."""
    if path_of(event, base_path(os.environ)).startswith(_GATEWAY):
        return gateway_keys.key_in(headers, login)
    return key_authentication.token_in(login)


def _caller_fields(authenticate: Callable[[], User | None]) -> dict[str, Any]:
    """Returns the fields of the context about a user; none for an unknown or deactivated one."""
    user = authenticate()
    if user is None or not user.is_active:
        return {}
    return {"username": user.username, "is_admin": user.is_admin}


def _login(event: Mapping[str, Any], headers: Mapping[str, str]) -> str:
    """Returns the value of the header with the caller's login; "" without one. Clients of the AI
    gateway may send it in a header of its own, because their Authorization header is meant for a
    provider."""
    gateway_login = headers.get(GATEWAY_LOGIN, "") if _GATEWAY in event.get("rawPath", "") else ""
    return gateway_login or headers.get("authorization", "")
