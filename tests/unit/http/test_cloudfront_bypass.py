"""Requests that bypass CloudFront are refused where the deployment asks for it, and before anything
is done for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from authorizer import app as authorizer
from mlcore.http import PlainRoute, Response, lambda_handler, nothing
from mlcore.http.cloudfront_bypass import ORIGIN_HEADER, REQUIRED_WORD, bypasses_cloudfront

WORD = "8d5c1c1e-0000-1111-2222-0a58a9feac02"


def ask(calls: list[str], headers: dict[str, str], method: str = "GET") -> dict[str, Any]:
    def answer(_message: object, _request: object) -> Response:
        calls.append("called")
        return Response(200, "OK")

    handler = lambda_handler(
        (), (PlainRoute("GET", "/health", nothing, answer, "shared_rules.public"),)
    )
    event = {
        "requestContext": {"http": {"method": method}},
        "rawPath": "/health",
        "headers": headers,
    }
    return handler(event, None)


@pytest.mark.parametrize(
    "headers", [{}, {ORIGIN_HEADER: ""}, {ORIGIN_HEADER: WORD[:-1]}, {ORIGIN_HEADER: f"{WORD}é"}]
)
@pytest.mark.parametrize("method", ["GET", "OPTIONS", "HEAD"])
def test_a_request_past_cloudfront(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], method: str
) -> None:
    monkeypatch.setenv(REQUIRED_WORD, WORD)
    calls: list[str] = []
    answered = ask(calls, headers, method)
    assert answered["statusCode"] == 403
    assert calls == []
    if method == "GET":
        assert json.loads(answered["body"])["error_code"] == "PERMISSION_DENIED"
        assert WORD not in json.dumps(answered)


def test_a_request_through_cloudfront(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REQUIRED_WORD, WORD)
    calls: list[str] = []
    assert ask(calls, {ORIGIN_HEADER: WORD})["statusCode"] == 200
    assert calls == ["called"]


@pytest.mark.parametrize("environment", [{}, {REQUIRED_WORD: ""}])
def test_no_word_is_required_by_default(environment: dict[str, str]) -> None:
    for headers in ({}, {ORIGIN_HEADER: "anything"}):
        assert not bypasses_cloudfront(environment, headers)


def test_the_authorizer_refuses_before_it_looks_for_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then API Gateway answers 403 and calls no function."""
    monkeypatch.setenv(REQUIRED_WORD, WORD)
    logins: list[str] = []
    monkeypatch.setattr(authorizer, "_authenticate", lambda login, _address: logins.append(login))
    event: dict[str, Any] = {
        "rawPath": "/health",
        "requestContext": {"http": {"sourceIp": "192.0.2.7"}},
        "headers": {"authorization": "x"},
    }
    assert authorizer.handler(event, None) == {"isAuthorized": False}
    assert logins == []
    event["headers"][ORIGIN_HEADER] = WORD
    assert authorizer.handler(event, None)["isAuthorized"] is True
    assert logins == ["x"]
