"""Methods, paths and cross-origin requests: our front against that of MLflow's server, live."""

from __future__ import annotations

import http.client
from typing import NamedTuple

import pytest

from tests.differential.rest import API

pytestmark = pytest.mark.e2e

EVIL = "http://evil.example"
CREATE = API + "experiments/create"
SEARCH = API + "experiments/search?max_results=1"
GET = API + "experiments/get?experiment_id=0"
JSON = {"Content-Type": "application/json"}
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-a"}


class Answer(NamedTuple):
    status: int
    reason: str
    headers: dict[str, str]
    body: str


def ask(url: str, method: str, path: str, headers: dict[str, str], body: bytes | None) -> Answer:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, response.reason, named, response.read().decode())
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("method", "path"),
    [(method, path) for method in ("OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "HEAD")
     for path in (CREATE, API + "nothing", "/health", "/version", "/nothing", "/api/2.0")]
    + [("OPTIONS", SEARCH), ("PUT", SEARCH), ("OPTIONS", GET), ("POST", GET), ("POST", "/health")]
    + [("GET", path) for path in
       (CREATE, API + "experiments/get/?experiment_id=0", API + "x/../experiments/get", "/health/",
        API.replace("api", "API") + "experiments/get?experiment_id=0",
        API + "metrics/get-history-bulk?run_id=x&metric_key=m", GET.replace("exp", "%65xp"),
        API + "experiments%2Fget?experiment_id=0",
        "/ajax-api/2.0/mlflow/experiments/search-datasets")],
)  # fmt: skip
def test_methods_and_paths(stock_url: str, product_url: str, method: str, path: str) -> None:
    stock, ours = (ask(url, method, path, {}, None) for url in (stock_url, product_url))
    assert (ours.status, ours.reason) == (stock.status, stock.reason)
    assert _allowed(ours) == _allowed(stock)
    for name in ("x-content-type-options", "x-frame-options"):
        assert ours.headers.get(name) == stock.headers.get(name)


def _allowed(answer: Answer) -> set[str]:
    return set(answer.headers.get("allow", "").split(", "))


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "preflight"])
@pytest.mark.parametrize(
    "origin",
    [EVIL, "null", "x", "file://", "http://localhost:3000", "https://localhost", "http://[::1]:8",
     "http://127.0.0.1:1", "http://localhost.evil.example", "http://[::1"],
)  # fmt: skip
def test_origins(stock_url: str, product_url: str, origin: str, method: str) -> None:
    headers = {"Origin": origin, **JSON, **(PREFLIGHT if method == "preflight" else {})}
    verb = "OPTIONS" if method == "preflight" else method
    body = b'{"max_results":1}' if method == "POST" else None
    stock, ours = (ask(url, verb, SEARCH, headers, body) for url in (stock_url, product_url))
    assert ours.status == stock.status
    for name in ("access-control-allow-origin", "access-control-allow-headers"):
        assert ours.headers.get(name) == stock.headers.get(name)
    if stock.status == 403 or method == "preflight":
        assert ours.body == stock.body


EXPORT = {"X-MLflow-Experiment-Id": "0", "Content-Type": "application/x-protobuf"}


@pytest.mark.parametrize(
    ("headers", "body"),
    [({**EXPORT, "Content-Type": kind}, b"x") for kind in
     ("text/plain", "", "APPLICATION/X-PROTOBUF", "application/jsonp", "text/plain; charset=utf-8",
      "application/x-protobuf; charset=utf-8", ";application/json", "text/\xe9")]
    + [({"X-MLflow-Experiment-Id": "0"}, b"x"), ({"Content-Type": "text/plain"}, b"x"),
       (EXPORT, b""), (EXPORT, b"\xff"), ({**EXPORT, "Content-Encoding": "br"}, b"x"),
       ({**EXPORT, "Content-Encoding": "gzip"}, b"x"), (JSON, b"{}"),
       ({**EXPORT, **JSON}, b"{"), ({**EXPORT, **JSON}, b"{}")],
)  # fmt: skip
def test_exports_are_refused_alike_to_the_byte(
    stock_url: str, product_url: str, headers: dict[str, str], body: bytes
) -> None:
    """FastAPI's answers: status, reason, type and body."""
    stock, ours = (
        ask(url, "POST", "/v1/traces", headers, body) for url in (stock_url, product_url)
    )
    kept = ("content-type", "content-length", "x-content-type-options", "x-frame-options")
    assert 400 <= stock.status < 500
    assert [ours[:2], ours.body, *map(ours.headers.get, kept)] == [
        *(stock[:2], stock.body, *map(stock.headers.get, kept))
    ]
