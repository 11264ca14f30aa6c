"""Authenticates and authorises requests before their functions run. Does nothing where no login is
required.

Whether login is required follows from the function's environment and from the event, which holds
the authorizer's result or, with AWS signatures, who signed the request. The two may differ during a
deployment or after a rollback of one function; then the stricter one applies.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from mlcore import errors
from mlcore.entities import caller_limit_variables
from mlcore.environment import AUTHENTICATION, IAM, signs_in
from mlcore.http.cloudfront_bypass import ORIGIN_HEADER
from mlcore.http.message_parsing import readable_request
from mlcore.http.raw_request import Sent
from mlcore.http.request import Request
from mlcore.http.response import Response
from mlcore.http.routes import Route, Rpc, only_reads
from mlcore.observability import logger
from mlcore.sign_in.cookie_headers import SESSION, cookie_name, remove_cookie

_TEXT: Final = "text/html; charset=utf-8"

_CHALLENGE: Final = Response(
    401,
    "You are not authenticated. Please see "
    "https://www.mlflow.org/docs/latest/auth/index.html#authenticating-to-mlflow "
    "on how to authenticate.",
    _TEXT,
    {"www-authenticate": 'Basic realm="mlflow"'},
)
REFUSED: Final = "mlflow-refused"
"""Cookie that tells the CloudFront distribution to ask for a new login, because a challenge may not
reach the browser. It contains 16 bits of a hash of the login, too few to reveal the password."""

_NO_SESSION: Final = remove_cookie(cookie_name(SESSION, is_secure=True))

_FORBIDDEN: Final = Response(403, "Permission denied", _TEXT)
_UNCHECKED: Final = (
    "The login was not checked: this server asks for one, and API Gateway let the request through "
    "without asking who calls. If this lasts longer than a deployment, its operator must deploy "
    "it again."
)
TWO_LOGINS: Final = "two_logins"
"""Field of the authorizer's answer: the request has two different logins for this server."""
_TWO_LOGINS_SENT: Final = (
    "The request has two different logins for this server. Send one: in Authorization or "
    "X-MLflow-Authorization, or an API key in x-api-key or x-goog-api-key."
)
LOGIN_NOT_CHECKED: Final = "login_not_checked"
"""Field of the authorizer's answer: what the check needs could not be read."""
_NOT_CHECKED_NOW: Final = "The login cannot be checked at present. Repeat the request."
_ANSWERS: Final = ("lambda", "iam")
"""Keys of ``requestContext.authorizer``: the authorizer's result, and the signer."""


class RequestRefused(Exception):
    """Raised to end a request with the given response, such as 401."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class Gate:
    """Authenticates the callers of a Lambda function's routes and applies the routes' policies.
    Imports :mod:`mlcore.policies` only if needed."""

    def __init__(self, environment: Mapping[str, str], routes: Sequence[Route]) -> None:
        """Loads the policies of the routes if the environment requires a login. Raises
        AttributeError or ModuleNotFoundError if a route names an unknown policy, and ValueError if
        a limit of callers is no whole number."""
        self._mode = environment.get(AUTHENTICATION) or "none"
        self._on = is_on(environment)
        self._signs_in = signs_in(environment)
        self._routes = routes
        self._limits = caller_limit_variables.stated(environment)
        self._guard: Any = None
        self._rules: dict[int, Any] = {}
        if self._on:
            self._load()

    def _load(self) -> Any:
        if self._guard is None:
            from mlcore.policies import route_authorization  # noqa: PLC0415 -- 10 ms of a cold start

            self._rules = {
                id(route): route_authorization.load_rules(
                    route.policy, route.follow, route.hides, route.path, reads=only_reads(route)
                )
                for route in self._routes
            }
            self._guard = route_authorization
        return self._guard

    def identify(self, request: Request, answers: Mapping[str, Any]) -> Request:
        """Returns the request with its caller; unchanged where no login is required, and for public
        pages.

        Args:
            answers: ``requestContext.authorizer`` of the event.

        Raises:
            RequestRefused: the caller is unknown, the password is wrong, the request has two
                different logins, or API Gateway let the request through without a check.
            RequestLimitExceeded: the authorizer could not check the login. Clients repeat no
                request after 401, and the login may be right.
        """
        checked = any(kind in answers for kind in _ANSWERS)
        if not (self._on or checked):
            return request
        guard = self._load()
        if guard.is_public(request.path):
            return request
        signed = self._mode == IAM if self._on else "lambda" not in answers
        if ("iam" if signed else "lambda") not in answers:
            logger.error(
                "the login of a request was not checked", extra={"authentication": self._mode}
            )
            raise RequestRefused(self._challenge()._replace(body=_UNCHECKED))
        authorized = {} if signed else answers.get("lambda") or {}
        if authorized.get(TWO_LOGINS):
            raise RequestRefused(self._challenge()._replace(body=_TWO_LOGINS_SENT))
        if authorized.get(LOGIN_NOT_CHECKED):
            raise errors.RequestLimitExceeded(_NOT_CHECKED_NOW)
        access = guard.authenticated_caller(answers, request.workspace, signed=signed)
        if access is None:
            raise RequestRefused(self._retry_challenge(request))
        return request._replace(access=access)

    def limits_callers(self) -> bool:
        """Whether requests of callers are counted and limited."""
        return bool(self._limits)

    def admit(self, request: Request) -> None:
        """Counts a request against its caller's limits. Raises CallerLimitReached if they are
        reached."""
        if request.access is not None:
            self._guard.admit_caller(self._limits, request.access)

    def _challenge(self) -> Response:
        if self._mode in ("basic", "none"):
            return _CHALLENGE
        return _CHALLENGE._replace(headers={"www-authenticate": 'Bearer realm="mlflow"'})

    def _retry_challenge(self, request: Request) -> Response:
        """Returns the response to a request without a valid login: the challenge (401), or a
        redirect of a browser to the login page. Browsers behind CloudFront also get the cookie that
        makes them ask for a new login."""
        challenge = self._challenge()
        credentials = request.headers.get("authorization", "")
        if self._signs_in and not credentials and _opens_page(request):
            query = f"?{request.query_text}" if request.query_text else ""
            page = quote(f"{quote(request.path)}{query}")
            return Response(302, "", _TEXT, {"location": f"/login?return={page}"})
        site = request.headers.get("sec-fetch-site")
        if self._signs_in and not credentials and site in ("same-origin", "none"):
            # The page's session has ended: without the cookie CloudFront asks for a sign-in. A page
            # of a neighbouring host is refused and must not end a session that is alive.
            return challenge._replace(cookies=(_NO_SESSION,))
        if (
            not credentials
            or ORIGIN_HEADER not in request.headers  # a forged header has no effect here
            or "sec-fetch-mode" not in request.headers
        ):
            return challenge
        digest = hashlib.sha256(credentials.encode()).hexdigest()[:4]
        cookie = f"{REFUSED}={digest}; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Strict"
        return challenge._replace(headers={**challenge.headers, "set-cookie": cookie})

    def check(self, route: Route, request: Request, message: Any) -> None:
        """Checks that the caller may call this route with this message, and counts the request
        towards the request limit of its workspace. Where no login is required, every call passes.

        Raises:
            RequestRefused: the caller lacks the permission (403).
            CallerLimitReached: the limits of the workspace are reached.
        """
        if request.access is None:
            return
        if not self._guard.is_allowed(self._rules[id(route)], request.access, message):
            raise RequestRefused(_FORBIDDEN)
        if self._limits:
            self._guard.admit_workspace(self._limits, request.access)

    def check_readable(self, route: Rpc, request: Request, sent: Sent) -> None:
        """Checks the caller's permission for a request that failed validation, by the fields that
        can be read, like :meth:`check`: so a caller without permission gets 403 instead of the
        validation error. If too little can be read, nothing is raised."""
        if request.access is None:
            return
        message = readable_request(route.message, sent)
        with contextlib.suppress(errors.MlflowError):
            self.check(route, request, message)

    def follow(self, route: Route, request: Request, message: Any, answer: dict[str, Any]) -> None:
        """Applies the route's rules after a successful call: updates grants, and removes from
        ``answer`` the data that the caller may not see."""
        if request.access is not None:
            self._guard.apply_after_success(self._rules[id(route)], request.access, message, answer)


def _opens_page(request: Request) -> bool:
    """Whether the request is a browser's navigation to a page, and not a call by a page or a
    program."""
    headers = request.headers
    return (
        request.method == "GET"
        and "text/html" in headers.get("accept", "")
        and headers.get("sec-fetch-mode", "navigate") == "navigate"
        and not request.path.startswith(("/api/", "/ajax-api/"))
    )


def is_on(environment: Mapping[str, str]) -> bool:
    """Whether a function with this environment requires a login."""
    return (environment.get(AUTHENTICATION) or "none") != "none"
