"""Who is sent to the sign-in: by CloudFront's function, and by the API behind it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import pytest

from local.cloudformation import load
from mlcore.http import lambda_handler
from server_info import app as server_info
from signin import addresses
from tests.contract.sign_in_browser import SESSION
from tests.doubles.edge_function import EdgeFunction
from tests.engines import ROOT

NAVIGATION = {"accept": "text/html,*/*", "sec-fetch-mode": "navigate", "sec-fetch-site": "none"}
CALL = {"accept": "*/*", "sec-fetch-mode": "cors", "sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module")
def edge() -> EdgeFunction:
    document = load(ROOT / "template.yaml")
    return EdgeFunction(document["Resources"]["UiSignIn"]["Properties"]["FunctionCode"])


@pytest.mark.parametrize("path", ["/", "/dashboards", "/signup", "//evil.example"])
def test_page_leads_to_the_sign_in(edge: EdgeFunction, path: str) -> None:
    answer = edge.answer("GET", path, NAVIGATION)
    assert answer is not None
    status, headers, _ = answer
    assert (status, headers["cache-control"]) == (302, "no-store")
    assert headers["location"].startswith("/login?return=%2F")


LINKS = [
    ("/dashboards", "from=2026-01-01&workspace=team%20a"),
    ("/dashboards/trash", "experiment_id=1&experiment_id=2"),
    ("/", "empty="),
    ("/dashboards", "next=%2F%2Fevil.example%3Fa%26b&%C3%BC=%C3%A4"),
]


@pytest.mark.parametrize(("path", "query"), LINKS)
def test_a_link_with_a_query_is_opened_after_the_sign_in(
    edge: EdgeFunction, monkeypatch: pytest.MonkeyPatch, path: str, query: str
) -> None:
    """Dashboards keep what they show in the query, so that people can send links to them."""
    answer = edge.answer("GET", path, NAVIGATION, query)
    assert answer is not None
    behind = _behind(path, NAVIGATION, monkeypatch, query)
    for location in (answer[1]["location"], behind["headers"]["location"]):
        page, _, sent = location.partition("?")
        assert (page, list(parse_qs(sent))) == ("/login", ["return"])
        [returned] = parse_qs(sent)["return"]
        assert addresses.return_address(returned) == f"{path}?{query}"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/static-files/main.js", NAVIGATION),
        ("/ajax-api/2.0/mlflow/users/current", CALL),
        ("/api/2.0/mlflow/users/current", NAVIGATION),
        ("/graphql", CALL),
        ("/", {"accept": "*/*"}),
        ("/", {**NAVIGATION, "authorization": "Bearer x"}),
        ("/", {**NAVIGATION, "cookie": f"{SESSION}=x"}),
    ],
)
def test_everything_else_passes(edge: EdgeFunction, path: str, headers: dict[str, str]) -> None:
    assert edge.answer("GET", path, headers) is None


def _behind(
    path: str, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch, query: str = ""
) -> Any:
    monkeypatch.setenv("AUTHENTICATION", "oidc")
    monkeypatch.setenv("OIDC_CLIENT_ID", "a-client")
    handler = lambda_handler(server_info.RPCS, server_info.PLAIN_ROUTES)
    event = {
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {"http": {"method": "GET"}, "authorizer": {"lambda": {}}},
    }
    return handler(event, None)


def test_page_behind_leads_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = _behind("//evil.example", NAVIGATION, monkeypatch)
    assert answer["statusCode"] == 302
    assert answer["headers"]["location"] == "/login?return=//evil.example"  # refused by /login


def test_programs_get_401(monkeypatch: pytest.MonkeyPatch) -> None:
    for headers in ({}, {"accept": "*/*"}, {**NAVIGATION, "authorization": "Bearer wrong"}):
        answer = _behind("/version", headers, monkeypatch)
        assert answer["statusCode"] == 401
        assert answer["headers"]["www-authenticate"] == 'Bearer realm="mlflow"'
        assert "cookies" not in answer


def test_page_whose_session_ended_loses_the_cookie(monkeypatch: pytest.MonkeyPatch) -> None:
    """So CloudFront asks for a sign-in when the page is loaded again."""
    answer = _behind("/ajax-api/2.0/mlflow/unknown", CALL, monkeypatch)
    assert answer["statusCode"] == 401
    [cookie] = answer["cookies"]
    assert cookie.startswith(f"{SESSION}=; ")
    assert "Max-Age=0" in cookie
