"""The MCP server by itself: what it takes and refuses, and what of a request reaches the API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

import pytest

import agent_tools.app
from agent_tools import mcp_protocol, tools
from mlcore.auth.api_key_scopes import KeyLimits
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.http.handler import Handler
from tests.contract.conftest import Store
from tests.contract.logins import named

Json = dict[str, Any]
VERSION = "mcp-protocol-version"


class Api:
    """An API that answers every request with the same object and remembers what it got."""

    def __init__(self) -> None:
        self.status, self.answer = 200, dict[str, Any]()
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        outer = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.asked.append((self.command, self.path, headers, body))
                content = json.dumps(outer.answer).encode()
                self.send_response(outer.status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.server.daemon_threads = True


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    made = Api()
    thread = threading.Thread(
        target=made.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    monkeypatch.setenv("API_URL", f"http://127.0.0.1:{made.server.server_address[1]}")
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def send(
    body: Any,
    *,
    method: str = "POST",
    handler: Handler = agent_tools.app.handler,
    caller: Json | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
    cookies: tuple[str, ...] = (),
) -> tuple[int, Any]:
    sent = {"content-type": "application/json", "host": "localhost"}
    event = {
        "version": "2.0",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": {**sent, **headers},
        "cookies": list(cookies),
        "requestContext": {
            "http": {"method": method},
            "requestId": "test",
            **({} if caller is None else {"authorizer": caller}),
        },
        "isBase64Encoded": False,
        "body": body if isinstance(body, str) else json.dumps(body),
    }
    answer = handler(event, None)
    text = answer["body"]
    return answer["statusCode"], json.loads(text) if text.startswith("{") else text


def call(
    name: str,
    arguments: Any,
    headers: Mapping[str, str] = MappingProxyType({}),
    cookies: tuple[str, ...] = (),
) -> tuple[bool, str]:
    """Whether the tool failed, and its text."""
    params = {"name": name, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    status, body = send(request, headers=headers, cookies=cookies)
    assert (status, body["id"]) == (200, 7)
    (content,) = body["result"]["content"]
    return body["result"]["isError"], content["text"]


def request(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": "a", "method": method, "params": params}


def test_the_handshake() -> None:
    for wanted, given in (("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25"), (3, None)):
        status, body = send(request("initialize", protocolVersion=wanted))
        assert (status, body["id"]) == (200, "a")
        assert body["result"]["protocolVersion"] == (given or mcp_protocol.VERSIONS[0])
    assert send({"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, "")
    assert send({"jsonrpc": "2.0", "id": 1, "result": {}}) == (202, "")
    assert send(request("ping"))[1]["result"] == {}
    listed = send(request("tools/list"), headers={VERSION: "2025-11-25"})[1]["result"]["tools"]
    assert [tool["name"] for tool in listed] == list(tools.TOOLS)
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed)
    for method in ("GET", "DELETE", "PUT"):
        assert send("", method=method)[0] == 405


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", -32700),
        ("{", -32700),
        ("[" * 100_000, -32700),
        (request("tools/call", name="get_run", arguments={"run_id": "\ud800"}), -32700),
        (request("ping", a="\udc00"), -32700),
        ("null", -32600),
        ([request("ping")], -32600),
        ({"id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": ["ping"]}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": "é" * 1_000_000, "method": "ping"}, -32600),
    ],
)
def test_what_is_no_message(body: Any, code: int) -> None:
    status, answer = send(body)
    assert (status, answer["id"], answer["error"]["code"]) == (400, None, code)


def test_what_is_refused(api: Api) -> None:
    assert send(request("ping"), headers={"content-type": "text/plain"})[0] == 400
    assert send(request("ping"), headers={"origin": "https://evil.example"})[0] == 403
    status, body = send(request("tools/list"), headers={VERSION: "2026-07-28"})
    assert (status, body["error"]["code"]) == (400, -32022)
    assert body["error"]["data"]["supported"] == ["2025-11-25", "2025-06-18"]
    for method in ("resources/list", "server/discover", "__class__", "m" * 9000):
        status, body = send(request(method))
        assert (status, body["error"]["code"]) == (200, -32601)
    for params in ({}, {"name": "delete_run"}, {"name": ["get_run"]}, {"name": "n" * 9000}):
        assert send(request("tools/call", **params))[1]["error"]["code"] == -32602
    assert api.asked == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_run", None),
        ("get_run", []),
        ("get_run", "r"),
        ("get_run", {}),
        ("get_run", {"run_id": None}),
        ("get_run", {"run_id": 3}),
        ("get_run", {"run_id": ["a", "b"]}),
        ("get_run", {"run_id": "a", "run_uuid": "b"}),
        ("search_runs", {"experiment_ids": "1"}),
        ("search_runs", {"experiment_ids": [1]}),
        ("search_runs", {"experiment_ids": ["1"], "max_results": True}),
        ("search_runs", {"experiment_ids": ["1"], "max_results": 0}),
        ("search_runs", {"experiment_ids": ["1"], "max_results": 10**9}),
        ("query_system_tables", {"sql": "SELECT 1", "fresh": True}),
        ("query_system_tables", {"sql": "SELECT 1", "format": "arrow"}),
        ("get_prompt", {"name": "p"}),
        ("get_prompt", {"name": "p", "version": "1", "alias": "a"}),
    ],
)
def test_arguments_that_do_not_fit(api: Api, name: str, arguments: Any) -> None:
    failed, text = call(name, arguments)
    assert (failed, text.partition(":")[0]) == (True, "INVALID_PARAMETER_VALUE")
    assert api.asked == []


def test_what_reaches_the_api(api: Api) -> None:
    """The login, the workspace and the arguments; nothing that could lead elsewhere."""
    api.answer = {"run": {"info": {"run_id": "x"}}}
    odd = "x&run_id=y#/../z?é\r\nHost: evil"
    failed, text = call(
        "get_run",
        {"run_id": odd},
        {
            "authorization": "Basic of-ann",
            "x-forwarded-for": "1.2.3.4",
            "x-api-key": "sk-1",
        },
        ("session=1", "other=2"),
    )
    assert (failed, json.loads(text)) == (False, api.answer)
    [(method, path, headers, _)] = api.asked
    assert method == "GET"
    assert path == (
        "/api/2.0/mlflow/runs/get?run_id=x%26run_id%3Dy%23%2F..%2Fz%3F%C3%A9%0D%0AHost%3A+evil"
    )
    assert (headers["authorization"], headers["cookie"]) == (
        "Basic of-ann",
        "session=1; other=2",
    )
    assert not {"x-forwarded-for", "x-api-key"} & headers.keys()
    call("search_traces", {"experiment_ids": ["1"], "filter": "a"})
    [_, (method, path, headers, body)] = api.asked
    assert (method, path) == ("POST", "/api/3.0/mlflow/traces/search")
    assert json.loads(body)["locations"][0]["mlflow_experiment"] == {"experiment_id": "1"}
    assert not {"authorization", "cookie"} & headers.keys()


def test_what_the_api_refuses(api: Api) -> None:
    for status, code, message in (
        (404, "RESOURCE_DOES_NOT_EXIST", "RESOURCE_DOES_NOT_EXIST: m"),
        (403, "PERMISSION_DENIED", "PERMISSION_DENIED: m"),
        (401, "", "PERMISSION_DENIED: m"),
        (429, "REQUEST_LIMIT_EXCEEDED", "REQUEST_LIMIT_EXCEEDED: m"),
        (500, "INTERNAL_ERROR", "TEMPORARILY_UNAVAILABLE: m"),
    ):
        api.status, api.answer = status, {"error_code": code, "message": "m"}
        assert call("get_run", {"run_id": "r"}) == (True, message)
    api.status, api.answer = 200, {"name": "é" * mcp_protocol.MAX_RESULT_BYTES}
    failed, text = call("get_run", {"run_id": "r"})
    assert (failed, "Ask for less" in text) == (True, True)


def test_a_model_is_no_prompt(api: Api) -> None:
    api.answer = {"model_version": {"name": "m", "version": "1", "source": "s3://secret"}}
    failed, text = call("get_prompt", {"name": "m", "alias": "a"})
    assert (failed, "s3://secret" in text) == (True, False)


def test_who_is_not_logged_in(api: Api, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler((), agent_tools.app.PLAIN_ROUTES)
    for body in (request("tools/list"), request("tools/call", name="get_run"), "{"):
        assert send(body, handler=handler, caller={"lambda": {}})[0] == 401
    assert send(request("ping"), handler=handler, caller=named("ann"))[0] in (200, 401, 403)
    assert api.asked == []


@pytest.mark.parametrize("scope", ["read", "sql", "experiment:1", "gateway:e", "model:m"])
def test_keys_with_scopes_send_themselves(
    api: Api, store: Store, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    """Any key opens the protocol; each tool is decided by the API, which gets the key."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler((), agent_tools.app.PLAIN_ROUTES)
    caller = {
        "lambda": {
            "key_user": "ann",
            "key_id": "k",
            "is_admin": True,
            "method": "basic",
            "scopes": KeyLimits("default", (scope,)).encoded(),
        }
    }
    body = request("tools/call", name="get_run", arguments={"run_id": "r"})
    headers = {"authorization": "Bearer mlk_token"}
    assert send(body, handler=handler, caller=caller, headers=headers)[0] == 200
    [(_, _, sent, _)] = api.asked
    assert sent["authorization"] == "Bearer mlk_token"


def test_signed_callers_are_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signature of AWS is valid for one request, and must not be passed on."""
    monkeypatch.setenv(AUTHENTICATION, "iam")
    failed, text = call("get_run", {"run_id": "r"}, {"authorization": "AWS4-HMAC-SHA256 …"})
    assert (failed, "AWS signature" in text) == (True, True)
    assert api.asked == []
