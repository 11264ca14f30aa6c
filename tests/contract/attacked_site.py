"""A deployment with an issuer, at which ada has signed in and has made an API key."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from authorizer import app as authorizer
from mlcore.repos.users import api_keys, users
from tests.contract.sign_in_browser import CLIENT, SECURE, SESSION, Browser
from tests.issuer import Issuer

ADA: Final = "ada@example.org"


class Site:
    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.ada = Browser()
        assert self.ada.sign_in(issuer).status == 302
        self.session = self.ada.cookies[SESSION]
        self.owner = users.get(ADA)
        made = api_keys.create(self.owner, "ci", "default", None, None)
        self.key, self.key_id = made.token, made.key.key_id

    def context(
        self, jar: Mapping[str, str] | None = None, method: str = "GET", /, **headers: str
    ) -> dict[str, Any]:
        """What the authorizer tells the functions about a request."""
        event = {
            "rawPath": "/api/2.0/mlflow/users/current",
            "rawQueryString": headers.pop("query", ""),
            "headers": {
                **SECURE,
                **{name.replace("_", "-"): value for name, value in headers.items()},
            },
            "cookies": [f"{name}={value}" for name, value in (jar or {}).items()],
            "requestContext": {"http": {"method": method, "sourceIp": "192.0.2.1"}},
        }
        context: dict[str, Any] = authorizer.handler(event, None)["context"]
        return context

    def knows(
        self, jar: Mapping[str, str] | None = None, method: str = "GET", /, **headers: str
    ) -> bool:
        """Whether the authorizer names a user."""
        context = self.context(jar, method, **headers)
        return "username" in context or "key_user" in context

    def bearer(self, token: str) -> bool:
        return self.knows(authorization=f"Bearer {token}")

    def basic(self, name: str, password: str) -> bool:
        text = b64encode(f"{name}:{password}".encode()).decode()
        return self.knows(authorization=f"Basic {text}")

    def token(self, **claims: Any) -> str:
        return self.issuer.token("k", **{"aud": CLIENT, **claims})
