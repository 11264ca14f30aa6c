"""Events of REST APIs become those of HTTP APIs, and nothing of a request can pretend to be what
API Gateway says about the caller."""

from __future__ import annotations

from typing import Any

import pytest

from mlcore.http.raw_request import Sent
from mlcore.http.request import headers_of
from mlcore.http.rest_events import as_http_event, is_rest_event

ARN = "arn:aws:iam::123456789012:user/ann"


def event(**more: Any) -> dict[str, Any]:
    return {
        "resource": "/gateway/{proxy+}",
        "path": "/gateway/gemini/v1beta/models/my%20chat%3AgenerateContent",
        "httpMethod": "POST",
        "headers": {"Host": "example.com"},
        "multiValueHeaders": {"Host": ["example.com"]},
        "queryStringParameters": {"alt": "sse"},
        "multiValueQueryStringParameters": {"alt": ["sse"], "k": ["a b", "c&d"]},
        "requestContext": {
            "requestId": "r",
            "apiId": "abc",
            "domainPrefix": "abc",
            "identity": {"sourceIp": "192.0.2.1", "userArn": None},
        },
        "body": "e30=",
        "isBase64Encoded": True,
    } | more


def test_a_request() -> None:
    made = as_http_event(event())
    assert is_rest_event(event())
    assert not is_rest_event(made)
    assert made["rawPath"] == "/gateway/gemini/v1beta/models/my chat:generateContent"
    sent = Sent("POST", made["rawPath"], headers_of(made), made)
    assert sent.query() == {"alt": ["sse"], "k": ["a b", "c&d"]}
    assert sent.body() == b"{}"
    assert made["requestContext"]["http"]["sourceIp"] == "192.0.2.1"
    assert made["requestContext"]["authorizer"] == {}


def test_what_is_missing() -> None:
    given = event(body=None, multiValueHeaders=None, multiValueQueryStringParameters=None)
    made = as_http_event(given)
    sent = Sent("GET", made["rawPath"], headers_of(made), made)
    assert (sent.body(), sent.query(), sent.headers, sent.cookies()) == (b"", {}, {}, ())


def test_headers_of_one_name_are_one_value() -> None:
    """An authorizer that read another one of them than the function would admit somebody else."""
    names = {"Authorization": ["Basic a"], "authorization": ["Basic b"], "Cookie": ["a=1; b=2"]}
    made = as_http_event(event(multiValueHeaders=names))
    assert made["headers"] == {"authorization": "Basic a,Basic b"}
    assert made["cookies"] == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("authorizer", "identity", "made"),
    [
        (
            {"principalId": "caller", "integrationLatency": 3, "username": "ann"},
            {},
            {"lambda": {"username": "ann"}},
        ),
        (None, {"userArn": ARN, "accountId": "123456789012"}, {"iam": {"userArn": ARN}}),
        ({"principalId": "caller"}, {}, {}),
        (None, {"userArn": ""}, {}),
    ],
)
def test_the_caller(authorizer: Any, identity: dict[str, str], made: Any) -> None:
    about = {"identity": identity, "authorizer": authorizer}
    assert as_http_event(event(requestContext=about))["requestContext"]["authorizer"] == made
