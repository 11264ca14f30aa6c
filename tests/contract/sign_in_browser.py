"""A browser with its cookies, between the sign-in's handler and an issuer that tests control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

import signin.app
from authorizer import session_authentication
from mlcore.entities.users import User
from mlcore.http import lambda_handler
from mlcore.process_cache import clear as forget
from mlcore.repos.settings import stored_settings
from mlcore.repos.users import users
from tests import issuer as issuer_server
from tests.contract.sealing import seal_here
from tests.issuer import Issuer

KEY, OTHER = issuer_server.rsa_key(), issuer_server.rsa_key()

HOST = "mlflow.example.org"
SECURE: Mapping[str, str] = {"host": HOST, "x-forwarded-proto": "https"}
CLIENT = "a-client"
SESSION = "__Host-mlflow-session"
SIGN_IN = "__Host-mlflow-sign-in"


class Page(NamedTuple):
    status: int
    location: str
    body: str
    cookies: tuple[str, ...]

    def query(self) -> dict[str, str]:
        """The query of the address to which it redirects."""
        return dict(parse_qsl(urlsplit(self.location).query))


class Browser:
    """Keeps cookies as browsers do; ``headers`` are those of a request over HTTPS."""

    def __init__(self, headers: Mapping[str, str] = SECURE) -> None:
        self.cookies: dict[str, str] = {}
        self.headers = dict(headers)
        self._handler = lambda_handler((), signin.app.PLAIN_ROUTES)

    def _event(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> Any:
        return {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {**self.headers, **headers},
            "cookies": [f"{name}={value}" for name, value in self.cookies.items()],
            "requestContext": {"http": {"method": method}, "requestId": "test"},
            "isBase64Encoded": False,
        }

    def open(self, path: str, query: Mapping[str, str] | str = "", **headers: str) -> Page:
        """Opens a page of the sign-in and does what the answer says about cookies."""
        text = query if isinstance(query, str) else urlencode(query)
        answer = self._handler(self._event("GET", path, text, headers), None)
        for cookie in answer.get("cookies", ()):
            name, _, rest = cookie.partition("=")
            value = rest.partition(";")[0]
            self.cookies.pop(name, None)
            if value:
                self.cookies[name] = value
        location = answer["headers"].get("location", "")
        return Page(
            answer["statusCode"], location, str(answer["body"]), tuple(answer.get("cookies", ()))
        )

    def user(self, method: str = "GET", **headers: str) -> User | None:
        """Who the authorizer says that it is."""
        event = self._event(method, "/api/2.0/mlflow/users/current", "", {})
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return session_authentication.authenticate(event, {**self.headers, **named})

    def begin(self, **query: str) -> Page:
        """Begins a sign-in."""
        page = self.open("/login", query)
        assert page.status == 302, page
        return page

    def answer(self, page: Page, issuer: Issuer, **claims: Any) -> dict[str, str]:
        """What the issuer returns with, when somebody has signed in there."""
        sent = page.query()
        code = f"code-{len(issuer.codes)}-{sent['state']}"
        issuer.challenges[code] = sent["code_challenge"]
        all_claims = {"aud": CLIENT, "nonce": sent["nonce"], **claims}
        issuer.codes[code] = {"id_token": issuer.token("k", **all_claims), "access_token": "a"}
        return {"state": sent["state"], "code": code}

    def sign_in(self, issuer: Issuer, path: str = "/login/callback", **claims: Any) -> Page:
        """Signs in without any trick."""
        name = path.removeprefix("/login/callback").strip("/")
        page = self.begin(**({"issuer": name} if name else {}))
        return self.open(path, self.answer(page, issuer, **claims))


@pytest.fixture
def issuer(
    shared_store: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Issuer]:
    seal_here(monkeypatch, tmp_path_factory.getbasetemp())
    forget()
    with issuer_server.running() as running:
        running.publish("k", KEY)
        for name, value in {
            "AUTHENTICATION": "oidc",
            "OIDC_ISSUER": running.url,
            "OIDC_CLIENT_ID": CLIENT,
            "OIDC_ADMIN_GROUP": "mlflow-admins",
        }.items():
            monkeypatch.setenv(name, value)
        yield running
        for setting in ("sign_in_roles", "sign_in_issuers"):
            stored_settings.delete(setting)
        for profile in users.find_all():  # the next issuer has another address
            users.delete(profile)
