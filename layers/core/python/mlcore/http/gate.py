"""Between a request and its function where callers log in; nothing where they do not.

Whether they do is said twice: by the environment of the function, and by the event, which carries
the authorizer's answer (or the signer) where the route asks for one. While a deployment changes the
one and not yet the other, or after a function was taken back, the stricter of the two counts.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mlcore import errors
from mlcore.environment import AUTHENTICATION, IAM
from mlcore.http.parsing import readable_request
from mlcore.http.request import Request
from mlcore.http.response import Response
from mlcore.http.routes import Route, Rpc
from mlcore.http.sent import Sent
from mlcore.observability import logger

_TEXT: Final = "text/html; charset=utf-8"

_CHALLENGE: Final = Response(
    401,
    "You are not authenticated. Please see "
    "https://www.mlflow.org/docs/latest/auth/index.html#authenticating-to-mlflow "
    "on how to authenticate.",
    _TEXT,
    {"www-authenticate": 'Basic realm="mlflow"'},
)
_ORIGIN: Final = "x-mlflow-origin"
"""Added by the distribution in front; whoever else sends it gains nothing here."""

REFUSED: Final = "mlflow-refused"
"""Cookie that tells the distribution which login to ask again for, instead of a challenge that may
not arrive. It names the login by 16 bits, which tell nobody the password."""

_FORBIDDEN: Final = Response(403, "Permission denied", _TEXT)
_UNCHECKED: Final = (
    "The login was not checked: this server asks for one, and API Gateway let the request through "
    "without asking who calls. If this lasts longer than a deployment, its operator must deploy "
    "it again."
)
_ANSWERS: Final = ("lambda", "iam")
"""Where ``requestContext.authorizer`` holds the authorizer's answer, and who signed."""


class Refused(Exception):
    """The request ends here."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status)
        self.response = response


class Gate:
    """Asks :mod:`mlcore.policies`, which is imported only where there is somebody to ask about."""

    def __init__(self, environment: Mapping[str, str], routes: Sequence[Route]) -> None:
        """Raises AttributeError, ModuleNotFoundError: a route names a policy that there is not."""
        self._mode = environment.get(AUTHENTICATION) or "none"
        self._on = is_on(environment)
        self._routes = routes
        self._guard: Any = None
        self._rules: dict[int, Any] = {}
        if self._on:
            self._load()

    def _load(self) -> Any:
        if self._guard is None:
            from mlcore.policies import guard  # noqa: PLC0415 -- 10 ms of a cold start

            self._rules = {
                id(route): guard.rules(route.policy, route.follow, route.hides)
                for route in self._routes
            }
            self._guard = guard
        return self._guard

    def identify(self, request: Request, answers: Mapping[str, Any]) -> Request:
        """The request with its caller.

        Args:
            answers: ``requestContext.authorizer`` of the event.

        Raises:
            Refused: nobody that we know, a wrong password, or a request of which nobody asked who
                calls.
        """
        asked = any(kind in answers for kind in _ANSWERS)
        if not (self._on or asked):
            return request
        guard = self._load()
        if guard.is_public(request.path):
            return request
        signed = self._mode == IAM if self._on else "lambda" not in answers
        if ("iam" if signed else "lambda") not in answers:
            logger.error("nobody was asked who calls", extra={"authentication": self._mode})
            raise Refused(self._challenge()._replace(body=_UNCHECKED))
        access = guard.caller(answers, request.workspace, signed=signed)
        if access is None:
            raise Refused(self._asking_again(request))
        return request._replace(access=access)

    def _challenge(self) -> Response:
        if self._mode in ("basic", "none"):
            return _CHALLENGE
        return _CHALLENGE._replace(headers={"www-authenticate": 'Bearer realm="mlflow"'})

    def _asking_again(self, request: Request) -> Response:
        """The challenge, in a form that a browser behind the distribution gets to see."""
        challenge = self._challenge()
        given = request.headers.get("authorization", "")
        if not given or _ORIGIN not in request.headers or "sec-fetch-mode" not in request.headers:
            return challenge
        digest = hashlib.sha256(given.encode()).hexdigest()[:4]
        cookie = f"{REFUSED}={digest}; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Strict"
        return challenge._replace(headers={**challenge.headers, "set-cookie": cookie})

    def check(self, route: Route, request: Request, message: Any) -> None:
        """Raises Refused: the caller may not do this."""
        if request.access is None:
            return
        if not self._guard.allows(self._rules[id(route)], request.access, message):
            raise Refused(_FORBIDDEN)

    def check_readable(self, route: Rpc, request: Request, sent: Sent) -> None:
        """As :meth:`check`, by what can be read of a refused message: who may not do a thing
        need not learn how it is asked for. A question that is not readable enough is left to the
        refusal."""
        if request.access is None:
            return
        read = readable_request(route.message, sent)
        with contextlib.suppress(errors.MlflowError):
            self.check(route, request, read)

    def follow(self, route: Route, request: Request, message: Any, answer: dict[str, Any]) -> None:
        """What a successful call means for grants; takes out what the caller may not know."""
        if request.access is not None:
            self._guard.afterwards(self._rules[id(route)], request.access, message, answer)


def is_on(environment: Mapping[str, str]) -> bool:
    """Whether callers must say who they are."""
    return (environment.get(AUTHENTICATION) or "none") != "none"
