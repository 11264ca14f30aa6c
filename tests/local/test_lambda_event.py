"""HTTP to payload format 2.0 and back."""

import base64
import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.http import lambda_event
from local.http.lambda_event import (
    MAXIMUM_PAYLOAD_BYTES,
    BadAnswer,
    HttpRequest,
    failure,
    from_http,
    is_text,
    is_too_large,
    to_http,
)
from local.http.routes import Match

MATCH = Match("ANY /a/{proxy+}", "F", {"proxy": "b"})


def request(
    path: Any = "/a/b", query: Any = "", headers: Any = (), body: Any = b"", method: Any = "POST"
) -> Any:
    return HttpRequest(method, path, query, headers, body, "HTTP/1.1", "10.0.0.1", "localhost")


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"content-type": "application/json"}, True),
        ({"content-type": "application/json; charset=utf-8"}, True),
        ({"content-type": "Text/Plain"}, True),
        ({"content-type": "application/xml"}, True),
        ({"content-type": "application/javascript"}, True),
        ({"content-type": "application/problem+json"}, True),
        ({"content-type": "application/x-www-form-urlencoded"}, False),
        ({"content-type": "application/octet-stream"}, False),
        ({"content-type": "application/x-protobuf"}, False),
        ({"content-type": "multipart/form-data; boundary=x"}, False),
        ({"content-type": "application/json", "content-encoding": "gzip"}, False),
        ({"content-type": "application/json", "content-encoding": "identity"}, True),
        ({}, False),
    ],
)
def test_content_type_decides_between_text_and_base64(headers: Any, text: Any) -> None:
    assert is_text(headers) is text
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    lambda_event = from_http(request(headers=raw, body=b'{"a":1}'), MATCH)
    assert lambda_event["isBase64Encoded"] is not text
    assert lambda_event["body"] == ('{"a":1}' if text else base64.b64encode(b'{"a":1}').decode())


def test_headers_are_joined_and_cookies_are_apart() -> None:
    lambda_event = from_http(
        request(
            headers=[
                (b"x-a", b"1"),
                (b"x-a", b"2"),
                (b"cookie", b"a=1; b=2"),
                (b"host", b"h.net:80"),
            ]
        ),
        MATCH,
    )
    assert lambda_event["headers"] == {"x-a": "1,2", "host": "h.net:80"}
    assert lambda_event["cookies"] == ["a=1", "b=2"]
    assert lambda_event["requestContext"]["domainName"] == "h.net"
    assert lambda_event["requestContext"]["http"]["sourceIp"] == "10.0.0.1"


def test_query_is_raw_and_joined() -> None:
    lambda_event = from_http(request(query="a=1&a=%C3%A9&b=&c=x+y"), MATCH)
    assert lambda_event["rawQueryString"] == "a=1&a=%C3%A9&b=&c=x+y"
    assert lambda_event["queryStringParameters"] == {"a": "1,é", "b": "", "c": "x y"}


def test_absent_parts_are_absent() -> None:
    lambda_event = from_http(request(), Match("$default", "F", {}))
    for name in ("body", "cookies", "queryStringParameters", "pathParameters"):
        assert name not in lambda_event
    assert lambda_event["version"] == "2.0"
    assert lambda_event["routeKey"] == lambda_event["requestContext"]["routeKey"] == "$default"
    assert lambda_event["isBase64Encoded"] is False
    assert lambda_event["requestContext"]["stage"] == "$default"


def test_path_is_decoded() -> None:
    lambda_event = from_http(request(path="/a/b%20c%2Fd"), MATCH)
    assert lambda_event["rawPath"] == lambda_event["requestContext"]["http"]["path"] == "/a/b c/d"


@given(st.binary(max_size=200), st.sampled_from(["text/plain", "application/octet-stream"]))
def test_bodies_survive(body: Any, kind: Any) -> None:
    lambda_event = json.loads(
        json.dumps(from_http(request(headers=[(b"content-type", kind.encode())], body=body), MATCH))
    )
    got = lambda_event.get("body", "")
    if lambda_event["isBase64Encoded"]:
        assert base64.b64decode(got) == body
    else:
        assert got == body.decode("utf-8", "replace")


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_query_parameters_survive(parameters: Any) -> None:
    lambda_event = from_http(request(query=urlencode(parameters)), MATCH)
    assert lambda_event.get("queryStringParameters", {}) == parameters


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_paths_survive(path: Any) -> None:
    assert from_http(request(path="/" + quote(path, safe="/")), MATCH)["rawPath"] == "/" + path


@given(st.binary(max_size=300), st.integers(200, 599))
def test_base64_answers_survive(body: Any, status: Any) -> None:
    answer = {
        "statusCode": status,
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
    }
    assert to_http(answer).body == body
    assert to_http(answer).status == status


def test_answer_without_status_is_json() -> None:
    response = to_http({"a": [1, "é"]})
    assert (response.status, response.body) == (200, '{"a":[1,"é"]}'.encode())
    assert dict(response.headers)[b"content-type"] == b"application/json"


def test_answer_headers_and_cookies() -> None:
    response = to_http(
        {
            "statusCode": "201",
            "headers": {"X-A": 1, "X-B": True, "Content-Length": "9", "Transfer-Encoding": "x"},
            "cookies": ["a=1", "b=2"],
        }
    )
    assert response.status == 201
    assert response.headers == [
        (b"x-a", b"1"),
        (b"x-b", b"true"),
        (b"content-type", b"text/plain;charset=UTF-8"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        {"statusCode": "abc"},
        {"statusCode": 42},
        {"statusCode": 101},
        {"statusCode": None},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "body": "?", "isBase64Encoded": True},
        {"statusCode": 200, "body": "x" * (MAXIMUM_PAYLOAD_BYTES - 5)},
        {"statusCode": 200, "body": '"' * (MAXIMUM_PAYLOAD_BYTES // 2)},
        object(),
    ],
)
def test_bad_answers(answer: Any) -> None:
    with pytest.raises(BadAnswer):
        to_http(answer)


def test_sizes() -> None:
    json_type = [(b"content-type", b"application/json")]
    assert not is_too_large(from_http(request(headers=json_type, body=b"x" * 6_000_000), MATCH))
    assert is_too_large(from_http(request(headers=json_type, body=b"x" * 6_291_456), MATCH))
    assert is_too_large(from_http(request(body=b"x" * 5_000_000), MATCH)), "Base64 adds a third"
    assert len(to_http({"statusCode": 200, "body": "x" * 6_000_000}).body) == 6_000_000


@given(
    text=st.text(st.sampled_from('x"\\\n\0\x1f\x7fé日😀'), min_size=1, max_size=9),
    bytes_of_json=st.integers(300, 440),
)
@settings(database=None)
def test_an_answer_is_refused_when_its_json_is_too_long(text: str, bytes_of_json: int) -> None:
    each = len(json.dumps(text, ensure_ascii=False).encode()) - 2
    answer = {"statusCode": 200, "body": text * (bytes_of_json // each)}
    size = len(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lambda_event, "MAXIMUM_PAYLOAD_BYTES", 400)
        patch.setattr(lambda_event, "MAXIMUM_HEADER_BYTES", 5)
        if size > lambda_event.MAXIMUM_PAYLOAD_BYTES:
            with pytest.raises(BadAnswer):
                to_http(answer)
        else:
            assert to_http(answer).body.decode() == answer["body"]


def test_failures_have_api_gateways_body() -> None:
    assert failure(500, "Internal Server Error").body == b'{"message":"Internal Server Error"}'
