"""The routes of sign-in in a browser. The sign-in routes exist only with
``Authentication=oidc`` and a value of the parameter ``OidcClientId``."""

from __future__ import annotations

import os

from mlcore.environment import signs_in
from mlcore.http import PlainRoute, Request, Response, lambda_handler
from signin import messages as m

# What the functions need is in the layer ``tokens``, which only deployments with OpenID Connect
# have, so it is imported by the request.


def _start(message: m.Start, request: Request) -> Response:
    from signin import start  # noqa: PLC0415 -- as above

    return start.start(message, request)


def _finish(message: m.Answer, request: Request) -> Response:
    from signin import callback  # noqa: PLC0415 -- as above

    return callback.finish(message, request)


def _leave(message: m.Leave, request: Request) -> Response:
    from signin import logout  # noqa: PLC0415 -- as above

    return logout.leave(message, request)


PUBLIC = "shared_rules.public"
PLAIN_ROUTES = (
    PlainRoute("GET", "/login", m.parse_start, _start, PUBLIC, since=""),
    PlainRoute("GET", "/login/callback", m.parse_answer, _finish, PUBLIC, since=""),
    PlainRoute("GET", "/login/callback/{issuer}", m.parse_answer, _finish, PUBLIC, since=""),
    PlainRoute("GET", "/logout", m.parse_leave, _leave, PUBLIC, since=""),
)

handler = lambda_handler((), PLAIN_ROUTES if signs_in(os.environ) else ())
