"""API keys and browsers' sessions of one deployment: which of the two counts, what ends both, and
that no foreign page makes a signed-in browser write, least of all a key."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import pytest

from authorizer import app as authorizer
from authorizer import oidc_authentication, session_authentication
from mlcore.http.routes import PlainRoute
from mlcore.repos.users import api_keys, sessions, users
from tests.contract.conftest import Store
from tests.contract.logins import ADMIN, Logins, named
from tests.contract.sign_in_browser import CLIENT, HOST, SECURE, SESSION, Browser
from tests.engines import ROOT
from tests.issuer import Issuer

KEYS = "3.0/mlflow-serverless/keys"
DELETE_USER = "2.0/mlflow/users/delete"
ADA = "ada@example.org"
FOREIGN: tuple[Mapping[str, str], ...] = (
    {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
    {"sec-fetch-site": "same-site", "origin": f"https://other.{HOST}"},
    {"sec-fetch-site": "none"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": ""},
    {"sec-fetch-site": "same-origin, cross-site"},
    {"sec-fetch-site": "SAME-ORIGIN"},
    {"origin": "null"},
    {"origin": "https://evil.example"},
    {"origin": f"https://{HOST}.evil.example"},
    {"origin": f"https://{HOST}:8443"},
    {"origin": f"https://evil@{HOST}"},
    {"origin": "http://localhost:5000"},
    {"origin": ""},
)
METHODS = ("POST", "PUT", "PATCH", "DELETE")


@pytest.fixture
def caller_of(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """What the authorizer of a deployment with sign-in tells the functions about a request."""
    monkeypatch.setenv("OIDC_AUDIENCE", CLIENT)
    authenticate = oidc_authentication.authenticator(
        {"OIDC_ISSUER": issuer.url, "OIDC_AUDIENCE": CLIENT}
    )
    monkeypatch.setattr(authorizer, "_method", "oidc")
    monkeypatch.setattr(authorizer, "_authenticate", authenticate)
    monkeypatch.setattr(authorizer, "_authenticate_session", session_authentication.authenticate)

    def ask(
        browser: Browser | None = None,
        method: str = "GET",
        path: str = "/api/2.0/mlflow/users/current",
        **headers: str,
    ) -> dict[str, Any]:
        sent = {**SECURE, **{name.replace("_", "-"): value for name, value in headers.items()}}
        jar = {} if browser is None else browser.cookies
        context: dict[str, Any] = authorizer.handler(
            {
                "rawPath": path,
                "headers": sent,
                "cookies": [f"{name}={value}" for name, value in jar.items()],
                "requestContext": {"http": {"method": method, "sourceIp": "192.0.2.1"}},
            },
            None,
        )["context"]
        return context

    return ask


@pytest.fixture
def ada(issuer: Issuer) -> Browser:
    browser = Browser()
    browser.sign_in(issuer)
    return browser


def is_unknown(context: dict[str, Any]) -> bool:
    """Whether the context names nobody."""
    return set(context) == {"method", "address", "login"}


def made_by(context: dict[str, Any], **fields: Any) -> str:
    """The token of a new key of the caller."""
    answer = Logins("oidc").ask({"lambda": context}, "POST", KEYS, name="ci", **fields)
    assert answer.status == 200, answer.body
    return str(answer.body["token"])


def test_session_makes_a_key_that_works_beside_it(ada: Browser, caller_of: Any) -> None:
    session = caller_of(ada, "POST", sec_fetch_site="same-origin")
    assert session == {
        "method": "oidc",
        "address": "192.0.2.1",
        "login": "session",
        "username": ADA,
        "is_admin": False,
    }
    token = made_by(session, scopes=["read"])
    basic = "Basic " + b64encode(f"{ADA}:{token}".encode()).decode()
    for login in (f"Bearer {token}", basic):
        for browser in (None, ada):  # the cookie beside it changes nothing, and lifts no scope
            known = caller_of(browser, authorization=login)
            assert (known["key_user"], known["scopes"] != "") == (ADA, True)
            assert "username" not in known
    assert caller_of(ada)["username"] == ADA


def test_refused_key_is_not_replaced_by_the_session(ada: Browser, caller_of: Any) -> None:
    token = made_by(caller_of(ada))
    key_id = token.split("_")[1]
    api_keys.delete(key_id)
    somebody = "Basic " + b64encode(f"eve:{token}".encode()).decode()
    for login in (f"Bearer {token}", somebody, "Bearer wrong", "Basic x", "Digest y"):
        assert is_unknown(caller_of(ada, authorization=login)), login


def test_key_of_an_administrator_by_group(
    issuer: Issuer, caller_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right to administrate is the session's: no key outlives the group."""
    browser = Browser()
    browser.sign_in(issuer, groups=["mlflow-admins"])
    context = caller_of(browser)
    assert context["is_admin"]
    assert caller_of(authorization=f"Bearer {made_by(context)}")["is_admin"] is False


def test_deleted_user_loses_keys_and_sessions(
    store: Store, issuer: Issuer, ada: Browser, caller_of: Any
) -> None:
    other = Browser()
    other.sign_in(issuer)
    token = made_by(caller_of(ada))
    for _ in range(2):  # the second request finds nobody
        Logins("oidc").ask(ADMIN, "DELETE", DELETE_USER, username=ADA)
    assert all(is_unknown(caller_of(browser)) for browser in (ada, other))
    assert is_unknown(caller_of(authorization=f"Bearer {token}"))
    left = [item for item in store.items() if ADA in json.dumps(item, default=str)]
    assert left == []
    users.create(ADA, "", is_admin=True)
    assert is_unknown(caller_of(ada))
    assert is_unknown(caller_of(authorization=f"Bearer {token}"))


def test_key_outlives_a_logout_and_ends_by_itself(ada: Browser, caller_of: Any) -> None:
    token = made_by(caller_of(ada))
    sessions.end_all(ADA)
    assert is_unknown(caller_of(ada))
    assert caller_of(authorization=f"Bearer {token}")["key_user"] == ADA


def test_issuer_speaks_for_no_service_account(issuer: Issuer, caller_of: Any) -> None:
    created = Logins("oidc").ask(
        ADMIN, "POST", "3.0/mlflow-serverless/service-accounts", username="robot@example.org"
    )
    assert created.status == 200
    browser = Browser()
    page = browser.sign_in(issuer, email="robot@example.org", sub="robot")
    assert page.status == 403
    assert SESSION not in browser.cookies
    bearer = f"Bearer {issuer.token('k', aud=CLIENT, email='robot@example.org')}"
    assert is_unknown(caller_of(authorization=bearer))


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_foreign_page_has_no_session(
    ada: Browser, caller_of: Any, headers: Mapping[str, str]
) -> None:
    for method in METHODS:
        for path in (f"/api/{KEYS}", f"/ajax-api/{KEYS}/rotate", "/graphql", "/x"):
            assert is_unknown(caller_of(ada, method, path, **headers)), (method, path)
    assert "username" in caller_of(ada, "POST", sec_fetch_site="same-origin", origin="null")


def writing_routes() -> list[tuple[Any, str, str]]:
    """Handler, method and path of every route that is not answered to GET."""
    results = []
    for file in sorted((ROOT / "functions").glob("*/app.py")):
        app = import_module(f"{file.parent.name}.app")
        for route in (*getattr(app, "RPCS", ()), *getattr(app, "PLAIN_ROUTES", ())):
            if route.method != "GET":
                prefix = "" if isinstance(route, PlainRoute) else "/ajax-api"
                results.append((app.handler, route.method, prefix + route.path))
    return results


def test_foreign_page_writes_by_no_route(store: Store, ada: Browser, caller_of: Any) -> None:
    """MLflow's, Kubeflow's, the gateway's, SQL's and our own: from the cookie to the answer."""
    assert caller_of(ada)["username"] == ADA
    before, request_count, taken = store.items(), 0, []
    for handler, method, template in writing_routes():
        path = template.replace("{", "").replace("+}", "").replace("}", "")
        context = caller_of(ada, method, path, sec_fetch_site="same-site")
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": "",
            "headers": {**SECURE, "sec-fetch-site": "same-site", "content-type": "text/plain"},
            "body": json.dumps({"name": "x", "experiment_ids": ["0"], "statement": "SELECT 1"}),
            "requestContext": {
                "http": {"method": method},
                "requestId": "test",
                "authorizer": {"lambda": context},
            },
            "isBase64Encoded": False,
        }
        request_count += 1
        status = handler(event, None)["statusCode"]
        if status not in (401, 404):  # 404: routes that exist only where the function knows logins
            taken.append((method, path, status))
    assert request_count > 200
    assert taken == []
    assert store.items() == before


def test_foreign_page_ends_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a request without a session removes the cookie only for the server's pages."""
    monkeypatch.setenv("AUTHENTICATION", "oidc")
    monkeypatch.setenv("OIDC_CLIENT_ID", CLIENT)
    from mlcore.http import lambda_handler  # noqa: PLC0415
    from users.app import RPCS  # noqa: PLC0415

    handler = lambda_handler(RPCS)
    for site, removes in (
        ("same-origin", True),
        ("none", True),
        ("same-site", False),
        ("x", False),
    ):
        answer = handler(
            {
                "rawPath": f"/api/{KEYS}",
                "headers": {**SECURE, "sec-fetch-site": site, "sec-fetch-mode": "cors"},
                "requestContext": {"http": {"method": "POST"}, "authorizer": {"lambda": {}}},
            },
            None,
        )
        assert answer["statusCode"] == 401
        assert bool(answer.get("cookies")) is removes, site


def test_only_administrators_see_whom_a_key_belongs_to(ada: Browser, caller_of: Any) -> None:
    eve = named("eve@example.org")
    users.create("eve@example.org", "", is_admin=False)
    made_by(caller_of(ada))
    assert Logins("oidc").ask(eve, "GET", KEYS, username=ADA).status == 403
    assert Logins("oidc").ask(ADMIN, "GET", KEYS, username=ADA).status == 200
