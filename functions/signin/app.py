"""The routes of sign-in in a browser. Without OidcClientId, and with other logins, they do not
exist."""

from __future__ import annotations

import os

from mlcore.environment import signs_in
from mlcore.http import PlainRoute, lambda_handler


def routes() -> tuple[PlainRoute, ...]:
    """Returns the routes. What they need is in the layer ``tokens``, which only deployments with
    OpenID Connect have."""
    from signin import callback, logout, start  # noqa: PLC0415 -- as above

    public = "requests.public"
    return (
        PlainRoute("GET", "/login", start.parse, start.start, public, since=""),
        PlainRoute("GET", "/login/callback", callback.parse, callback.finish, public, since=""),
        PlainRoute(
            "GET", "/login/callback/{issuer}", callback.parse, callback.finish, public, since=""
        ),
        PlainRoute("GET", "/logout", logout.parse, logout.leave, public, since=""),
    )


PLAIN_ROUTES = routes() if signs_in(os.environ) else ()

handler = lambda_handler((), PLAIN_ROUTES)
