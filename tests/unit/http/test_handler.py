"""Events in, responses out, with a domain made up for the purpose."""

from __future__ import annotations

import base64
import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

from mlcore import errors
from mlcore.db import deadline
from mlcore.http import (
    PlainRoute,
    Request,
    Response,
    Sent,
    delete,
    get,
    lambda_handler,
    nothing,
    patch,
    post,
    put,
)
from mlcore.repos.workspaces import workspaces
from mlcore.wire import Message, required


class Thing(Message):
    name: str
    ids: list[str]
    flag: bool
    thing_id: str


class Named(Message):
    name: str
    checks = {"name": (required,)}


def echo(message: Thing, request: Request) -> dict[str, Any]:
    return {
        "name": message.name,
        "ids": message.ids,
        "thing_id": message.thing_id,
        "ws": request.workspace,
    }


def fail(_message: Thing, _request: Request) -> dict[str, Any]:
    raise RuntimeError("secret internals")


def refuse(_message: Thing, _request: Request) -> dict[str, Any]:
    raise errors.ResourceDoesNotExist("No such thing")


def files(sent: Sent) -> str:
    return json.dumps({"path": sent.parameters["path"], **sent.arguments()})


handler = lambda_handler(
    (
        post("/things/create", Thing, echo, "shared_rules.anybody"),
        get("/things/get", Thing, echo, "shared_rules.anybody"),
        get("/things/named", Named, lambda *_: {}, "shared_rules.anybody"),
        get("/things/{thing_id}", Thing, echo, "shared_rules.anybody", version="3.0"),
        patch("/things/{thing_id}", Thing, echo, "shared_rules.anybody", version="3.0"),
        put("/things/{thing_id}/parts", Thing, echo, "shared_rules.anybody", version="3.0"),
        delete("/things/delete", Thing, echo, "shared_rules.anybody"),
        post("/things/fail", Thing, fail, "shared_rules.anybody"),
        post("/things/refuse", Thing, refuse, "shared_rules.anybody"),
        get("/things/ajax", Thing, echo, "shared_rules.anybody", ajax_only=True),
        get(
            "/things/large",
            Thing,
            lambda message, _: {"x": message.name * 1_000_000},
            "shared_rules.anybody",
        ),
    ),
    (
        PlainRoute(
            "GET",
            "/plain",
            nothing,
            lambda _, request: Response(200, request.path, "text/plain"),
            "shared_rules.anybody",
        ),
        PlainRoute(
            "PUT",
            "/bytes/{name}",
            Sent.body,
            lambda body, _: Response(200, body),
            "shared_rules.anybody",
        ),
        PlainRoute(
            "GET",
            "/files/{path+}",
            files,
            lambda text, _: Response(200, text),
            "shared_rules.anybody",
        ),
    ),
)


def call(
    method: str,
    path: str,
    body: Any = None,
    query: str = "",
    headers: dict[str, str] | None = None,
    encoded: bool = False,
) -> tuple[int, Any]:
    answer = answer_to(method, path, body, query, headers, encoded)
    text = answer["body"]
    return answer["statusCode"], json.loads(text) if text.startswith("{") else text


def answer_to(
    method: str,
    path: str,
    body: Any = None,
    query: str = "",
    headers: dict[str, str] | None = None,
    encoded: bool = False,
) -> dict[str, Any]:
    return handler(
        {
            "requestContext": {"http": {"method": method}, "requestId": "req-1"},
            "rawPath": path,
            "rawQueryString": query,
            "headers": {"content-type": "application/json"} if headers is None else headers,
            "body": body,
            "isBase64Encoded": encoded,
        },
        None,
    )


@pytest.mark.parametrize("data", [b"", b"text", bytes(range(256))])
def test_bytes_come_and_go_as_they_are(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    answer = answer_to("PUT", "/bytes/x", text, headers={}, encoded=True)
    assert answer["isBase64Encoded"]
    assert base64.b64decode(answer["body"]) == data


def test_bytes_that_are_none() -> None:
    assert call("PUT", "/bytes/x", "!", headers={}, encoded=True)[0] == 400


def test_the_rest_of_a_path() -> None:
    assert call("GET", "/files/a/b", query="q=1&q=2&e=") == (
        200,
        {"path": "a/b", "q": "1", "e": ""},
    )
    assert call("GET", "/files/")[1] == {"path": ""}
    assert call("GET", "/files")[0] == 404
    assert call("POST", "/files/a/b")[0] == 405


@pytest.mark.parametrize("prefix", ["/api/2.0", "/ajax-api/2.0"])
def test_both_prefixes(prefix: str) -> None:
    assert call("POST", f"{prefix}/things/create", '{"name":"a"}')[1]["name"] == "a"


def test_what_is_made_for_the_ui_has_one_prefix() -> None:
    assert call("GET", "/ajax-api/2.0/things/ajax")[0] == 200
    assert call("GET", "/api/2.0/things/ajax")[0] == 404


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("{bad", ""),
        (None, ""),
        ("null", ""),
        ('"{\\"name\\":\\"twice\\"}"', "twice"),
        ('"null"', ""),
        ("[]", ""),
    ],
)
def test_lenient_bodies(body: str | None, name: str) -> None:
    assert call("POST", "/api/2.0/things/create", body) == (
        200,
        {"name": name, "ids": [], "thing_id": "", "ws": "default"},
    )


@pytest.mark.parametrize("body", ["5", '"x"', "[" * 100_000])
def test_bodies_that_hold_no_object(body: str) -> None:
    status, answer = call("POST", "/api/2.0/things/create", body)
    assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_base64_bodies() -> None:
    body = base64.b64encode('{"name":"é"}'.encode()).decode()
    assert call("POST", "/api/2.0/things/create", body, encoded=True)[1]["name"] == "é"


@pytest.mark.parametrize("body", ["=", "abc", "é", base64.b64encode(b'{"name":"\xff"}').decode()])
def test_bodies_that_are_no_text_count_as_empty_as_in_mlflow(body: str) -> None:
    path = "/api/2.0/things/create"
    assert call("POST", path, body, encoded=True) == call("POST", path, "{}")


@pytest.mark.parametrize(("text", "status"), [("abcde", 200), ("abcdefg", 400), ('""""', 400)])
def test_answers_that_lambda_cannot_return(text: str, status: int) -> None:
    answer = answer_to("GET", "/api/2.0/things/large", query=f"name={text}", headers={})
    assert answer["statusCode"] == status
    assert len(json.dumps(answer)) < 6 * 1024 * 1024


def test_a_refusal_that_quotes_much_stays_within_lambdas_limit() -> None:
    body = json.dumps({"ids": "x", "name": ["é" * 1_000_000], "flag": "\\" * 1_000_000})
    status, _ = call("POST", "/api/2.0/things/create", body)
    assert status == 400
    answer = answer_to("POST", "/api/2.0/things/create", json.dumps({"flag": "é" * 1_000_000}))
    assert len(json.dumps(answer)) < 1_000_000


def test_queries() -> None:
    answer = call("GET", "/api/2.0/things/get", query="ids=a&ids=b%2Fc&name=x+y&name=z", headers={})
    assert answer[1] == {"name": "x y", "ids": ["a", "b/c"], "thing_id": "", "ws": "default"}
    assert call("GET", "/api/2.0/things/get", query="flag=maybe")[0] == 400
    assert call("GET", "/api/2.0/things/named")[0] == 400


def test_a_get_without_query_reads_its_body() -> None:
    assert call("GET", "/api/2.0/things/get", '{"name":"a"}', headers={})[1]["name"] == "a"


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({}, "Bad Request. Content-Type header is missing."),
        (
            {"content-type": "text/plain"},
            "Bad Request. Content-Type must be one of ['application/json'].",
        ),
    ],
)
def test_content_types(headers: dict[str, str], text: str) -> None:
    status, answer = call("POST", "/api/2.0/things/create", "{}", headers=headers)
    assert (status, answer["message"]) == (400, text)
    assert call("DELETE", "/api/2.0/things/delete", "{}", headers=headers)[0] == 200
    json_with_parameter = {"Content-Type": "application/json; charset=utf-8"}
    assert call("POST", "/api/2.0/things/create", "{}", headers=json_with_parameter)[0] == 200


def test_path_parameters() -> None:
    # API Gateway has decoded the path; a second time would make "%2F" a slash.
    assert call("GET", "/api/3.0/things/a b")[1]["thing_id"] == "a b"
    assert call("GET", "/api/3.0/things/a%2F..%2Fb")[1]["thing_id"] == "a%2F..%2Fb"
    assert (
        call("PATCH", "/ajax-api/3.0/things/t", '{"name":"n","thing_id":"other"}')[1]["thing_id"]
        == "t"
    )
    assert call("PUT", "/api/3.0/things/t/parts", "{}")[1]["thing_id"] == "t"
    assert call("GET", "/api/3.0/things/t", '{"name":"body"}')[1] == {
        "name": "body", "ids": [], "thing_id": "t", "ws": "default",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/2.0/nothing", 404),
        ("GET", "/api/3.0/things/", 404),
        ("GET", "/things/get", 404),
        ("GET", "/", 404),
        ("GET", "", 404),
        ("OPTIONS", "/api/2.0/nothing", 404),
        ("GET", "/api/2.0/things/get/", 404),
        ("GET", "/api/2.0//things/get", 404),
        ("GET", "/api/2.0/other/../things/get", 404),
        ("GET", "/API/2.0/things/get", 404),
        ("GET", "/api/3.0/things/a/b", 404),
        ("GET", "/plain/", 404),
        ("HEAD", "/api/2.0/things/create", 405),
        ("TRACE", "/api/2.0/things/get", 405),
        ("POST", "/api/2.0/things/get", 405),
        ("DELETE", "/api/3.0/things/x", 405),
        ("POST", "/plain", 405),
    ],
)
def test_no_route(method: str, path: str, status: int) -> None:
    answer = answer_to(method, path)
    assert answer["statusCode"] == status
    if method != "HEAD":
        assert json.loads(answer["body"])["error_code"] == "ENDPOINT_NOT_FOUND"
    assert ("allow" in answer["headers"]) == (status == 405)


@pytest.mark.parametrize(
    ("path", "status", "allow"),
    [
        ("/api/2.0/things/get", 204, "GET, HEAD, OPTIONS"),
        ("/ajax-api/2.0/things/create", 204, "OPTIONS, POST"),
        ("/api/3.0/things/x", 204, "GET, HEAD, OPTIONS, PATCH"),
        ("/plain", 200, "GET, HEAD, OPTIONS"),
    ],
)
def test_options(path: str, status: int, allow: str) -> None:
    answer = answer_to("OPTIONS", path)
    assert (answer["statusCode"], answer["body"]) == (status, "")
    assert answer["headers"]["allow"] == allow


def test_plain_routes_and_head() -> None:
    assert call("GET", "/plain") == (200, "/plain")
    assert call("HEAD", "/plain") == (200, "")


def test_errors() -> None:
    assert call("POST", "/api/2.0/things/refuse", "{}") == (
        404,
        errors.ResourceDoesNotExist("No such thing").body(),
    )


def test_unexpected_errors_tell_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    status, answer = call("POST", "/api/2.0/things/fail", "{}")
    assert (status, answer["error_code"]) == (500, "INTERNAL_ERROR")
    assert "secret" not in json.dumps(answer)
    assert "req-1" in answer["message"]


def test_workspaces(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"content-type": "application/json", "x-mlflow-workspace": "team"}
    status, answer = call("POST", "/api/2.0/things/create", "{}", headers=headers)
    assert (status, answer["error_code"]) == (400, "FEATURE_DISABLED")
    monkeypatch.setenv("MLFLOW_ENABLE_WORKSPACES", "true")
    checked: list[str] = []
    monkeypatch.setattr(workspaces, "check_exists", checked.append)
    assert call("POST", "/api/2.0/things/create", "{}", headers=headers)[1]["ws"] == "team"
    assert checked == ["team"]
    headers["x-mlflow-workspace"] = "No-Name"
    status, answer = call("POST", "/api/2.0/things/create", "{}", headers=headers)
    assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


class _Invocation:
    def get_remaining_time_in_millis(self) -> int:
        return 5_000


@pytest.mark.parametrize(("context", "seconds"), [(_Invocation(), 3.0), (None, math.inf)])
def test_the_deadline_of_a_request(
    context: Any, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Lambda leaves, less the time for the answer."""
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: 100.0))
    seen: list[float] = []

    def look(_message: None, _request: Request) -> Response:
        seen.append(deadline.current() - 100.0)
        return Response(200, "")

    route = PlainRoute("GET", "/look", nothing, look, "shared_rules.public")
    handler = lambda_handler((), (route,))
    handler({"rawPath": "/look", "requestContext": {"http": {"method": "GET"}}}, context)
    assert seen == [seconds]
    assert deadline.current() == math.inf


@pytest.mark.parametrize(
    ("domain", "path", "served"),
    [
        ("mlflow.example.com", "/tracking/api/2.0/things/create", True),
        ("mlflow.example.com", "/api/2.0/things/create", True),
        ("mlflow.example.com", "/trackings/api/2.0/things/create", False),
        ("a1b2.execute-api.eu-west-1.amazonaws.com", "/api/2.0/things/create", True),
        ("a1b2.execute-api.eu-west-1.amazonaws.com", "/tracking/api/2.0/things/create", False),
    ],
)
def test_a_base_path_is_no_part_of_the_path(
    domain: str, path: str, served: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """API Gateway leaves it in what the function gets."""
    monkeypatch.setenv("API_BASE_PATH", "tracking")
    route = post("/things/create", Message, lambda *_: {}, "shared_rules.anybody")
    handler = lambda_handler((route,))
    event = {
        "requestContext": {
            "http": {"method": "POST"},
            "apiId": "a1b2",
            "domainName": domain,
            "domainPrefix": domain.partition(".")[0],
        },
        "rawPath": path,
        "headers": {"content-type": "application/json"},
        "body": "{}",
    }
    assert (handler(event, None)["statusCode"] == 200) == served
