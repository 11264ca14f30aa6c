"""A browser behind CloudFront is asked for its login, also after a wrong password, although API
Gateway renames the header that asks."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

import server_info.app
from local.cloudformation import Resolver, load
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.http.gate import REFUSED
from tests.doubles.edge_function import EdgeFunction
from tests.engines import ROOT

BROWSER = {"sec-fetch-mode": "cors", "sec-fetch-site": "same-origin"}
WRONG, RIGHT = (
    {"authorization": f"Basic {b64encode(b'ada:' + password).decode()}"}
    for password in (b"wrong", b"right")
)
PAGE, CALL = "/", "/ajax-api/2.0/mlflow/experiments/search"


def distribution(authentication: str) -> tuple[EdgeFunction, dict[str, bool]]:
    """The function, and the paths at which it is asked."""
    document = load(ROOT / "template.yaml")
    resolver = Resolver(document, parameters={"Authentication": authentication})
    resources = document["Resources"]
    config = resolver.resolve(resources["UiDistribution"]["Properties"]["DistributionConfig"])
    behaviours = [*config["CacheBehaviors"], {**config["DefaultCacheBehavior"], "PathPattern": "/"}]
    assert all(
        behaviour["TargetOriginId"] == "api"
        for behaviour in behaviours
        if "signup" in behaviour["PathPattern"]
    )
    has_function = {
        behaviour["PathPattern"]: "FunctionAssociations" in behaviour
        for behaviour in behaviours
        # The rest are files that are open; their function says where they are.
        if behaviour["PathPattern"] != "/build/*"
    }
    return EdgeFunction(resources["UiLogin"]["Properties"]["FunctionCode"]), has_function


@pytest.fixture(scope="module")
def edge() -> EdgeFunction:
    return distribution("basic")[0]


@pytest.fixture
def origin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Asks a function for a path as CloudFront and API Gateway do; the authorizer knows nobody."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler(server_info.app.RPCS, server_info.app.PLAIN_ROUTES)

    def ask(path: str, headers: dict[str, str]) -> dict[str, Any]:
        event = {
            "rawPath": path,
            "headers": {**headers, "x-mlflow-origin": "word"},
            "requestContext": {"http": {"method": "GET"}, "authorizer": {"lambda": {}}},
        }
        return handler(event, None)

    return ask


def test_where_it_is_asked() -> None:
    has_function = distribution("basic")[1]
    assert {path for path, yes in has_function.items() if yes} == {
        *("/", "/ajax-api/*", "/graphql", "/get-artifact", "/model-versions/get-artifact"),
        "/signup",
    }
    # Clients send what they have without being asked, and are told by MLflow's own answer.
    assert {"/api/*", "/v1/traces", "/health", "/version"} <= set(has_function)
    for other in ("none", "oidc", "iam"):
        assert not any(distribution(other)[1].values())


@pytest.mark.parametrize("path", [PAGE, CALL, "/signup", "/graphql"])
def test_nobody_is_asked(edge: EdgeFunction, origin: Any, path: str) -> None:
    answer = edge.answer("GET", path, BROWSER)
    assert answer is not None
    status, headers, body = answer
    behind = origin(path, BROWSER)
    assert status == behind["statusCode"] == 401
    assert body.decode() == behind["body"]
    assert headers["content-type"] == behind["headers"]["content-type"]
    assert headers["www-authenticate"] == behind["headers"]["www-authenticate"]
    assert headers["cache-control"] == "no-store"
    assert "set-cookie" not in headers
    assert "set-cookie" not in behind["headers"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/static-files/main.js"),
        ("GET", "/favicon.ico"),
        ("GET", "/health"),
        ("GET", "/ajax-api/3.0/mlflow/server-info"),
        ("OPTIONS", CALL),
    ],
)
def test_what_is_open_stays_open(edge: EdgeFunction, method: str, path: str) -> None:
    assert edge.answer(method, path, BROWSER) is None


def test_a_wrong_password_is_asked_for_again(edge: EdgeFunction, origin: Any) -> None:
    """By CloudFront, for what the API's own answer cannot do; the right one then passes."""
    sent = {**BROWSER, **WRONG}
    assert edge.answer("GET", CALL, sent) is None
    refused = origin(CALL, sent)
    assert refused["statusCode"] == 401
    cookie, *attributes = refused["headers"]["set-cookie"].split("; ")
    assert cookie.startswith(f"{REFUSED}=")
    assert set(attributes) >= {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"}
    again = edge.answer("GET", PAGE, {**sent, "cookie": cookie})
    assert again is not None
    assert again[1]["www-authenticate"]
    assert again[1]["set-cookie"].startswith(f"{REFUSED}=; ")
    assert "Max-Age=0" in again[1]["set-cookie"]
    # A refusal that arrives late does not hold up the right password.
    assert edge.answer("GET", CALL, {**BROWSER, **RIGHT, "cookie": cookie}) is None


def test_clients_get_no_cookie(origin: Any) -> None:
    assert "set-cookie" not in origin(CALL, WRONG)["headers"]
    assert "wrong" not in json.dumps(origin(CALL, {**BROWSER, **WRONG}))
