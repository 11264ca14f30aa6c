"""Whatever a caller sends is answered with less than 500: generated events on the real RPC tables,
with service functions that only look at their message."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments import app as experiments
from mlcore.http import Request, Rpc, lambda_handler
from mlcore.wire import Message
from mlcore.wire.message import fields_of
from runs import app as runs
from server_info import app as server_info

EXAMPLES = int(os.environ.get("HTTP_EXAMPLES", "20"))


def look(message: Message, _request: Request) -> Mapping[str, Any]:
    """Reads every field, as a service function may."""
    return {"read": repr([getattr(message, field.name) for field in fields_of(type(message))])}


RPCS = [
    rpc._replace(function=look)
    for domain in (experiments, runs, server_info)
    for rpc in domain.RPCS
]
HANDLER = lambda_handler(RPCS, server_info.PLAIN_ROUTES)

paths = st.one_of(
    st.sampled_from(
        ["/health", "/version", "/", "", "//", "/api/", "/ajax-api/3.0", "/api/2.0/../x"]
    ),
    st.text(max_size=20).map("/api/2.0/mlflow/".__add__),
)
methods = st.sampled_from(
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "x"]
)
values = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["application/json", "application/json;;", ";", "null", "http://[", "*", ",,"]),
)
headers = st.dictionaries(
    st.one_of(
        st.sampled_from(["Content-Type", "content-type", "Origin", "host", "Sec-Fetch-Site",
                         "x-mlflow-workspace", "access-control-request-method"]),
        st.text(max_size=10),
    ),
    values,
    max_size=5,
)  # fmt: skip
data = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
        st.sampled_from(["\ud800", "NaN", "1e999", "9" * 5000, 10**400, -(2**63)]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


@st.composite
def requests(draw: Any) -> dict[str, Any]:
    """An event: mostly of a real RPC with fields of its message, in body and query string."""
    rpc: Rpc = draw(st.sampled_from(RPCS))
    method, path, sent = rpc.method, "/ajax-api" + rpc.path, {"content-type": "application/json"}
    names = st.sampled_from([field.name for field in fields_of(rpc.message)] or ["x"])
    body: Any = json.dumps(draw(st.dictionaries(st.one_of(names, st.text(max_size=5)), data)))
    query = "&".join(
        f"{name}={value}" for name, value in draw(st.lists(st.tuples(names, values), max_size=4))
    )
    match draw(st.sampled_from(["plain"] * 4 + ["path", "method", "headers", "body", "bytes"])):
        case "path":
            path = draw(paths)
        case "method":
            method = draw(methods)
        case "headers":
            sent = draw(headers)
        case "body":
            body = draw(st.one_of(st.none(), st.text(), data.map(json.dumps).map(json.dumps)))
        case "bytes":
            return event(method, path, query, sent, draw(encoded_bodies), encoded=True)
    return event(method, path, query, sent, body, encoded=False)


encoded_bodies = st.one_of(st.text(), st.binary().map(lambda raw: base64.b64encode(raw).decode()))


def event(
    method: str, path: str, query: str, sent: dict[str, str], body: str | None, *, encoded: bool
) -> dict[str, Any]:
    return {
        "requestContext": {"http": {"method": method}, "requestId": "r"},
        "rawPath": path,
        "rawQueryString": query,
        "headers": sent,
        "body": body,
        "isBase64Encoded": encoded,
    }


@settings(max_examples=EXAMPLES, deadline=None, database=None,
          suppress_health_check=list(HealthCheck))  # fmt: skip
@given(request=requests())
def test_no_request_is_our_failure(request: dict[str, Any]) -> None:
    answer = HANDLER(request, None)
    json.dumps(answer).encode()
    assert 200 <= answer["statusCode"] < 500, answer["body"]
    for name, value in answer["headers"].items():
        assert "\n" not in name + value
    if answer["headers"]["content-type"] == "application/json" and answer["body"]:
        assert isinstance(json.loads(answer["body"]), dict)


@pytest.mark.parametrize("depth", [*range(10, 1000, 15), 5_000, 200_000])
@pytest.mark.parametrize("opening", ['{"tags":[', "[", '{"name":'])
def test_deep_bodies(opening: str, depth: int) -> None:
    path, sent = "/api/2.0/mlflow/experiments/create", {"content-type": "application/json"}
    closing = "".join({"[": "]", "{": "}"}.get(character, "") for character in reversed(opening))
    body = opening * depth + "1" + closing * depth
    answer = HANDLER(event("POST", path, "", sent, body, encoded=False), None)
    assert answer["statusCode"] == 400


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ('{"name":"é"}'.encode("cp1252"), 400),
        (b'{"name":"\xed\xa0\x80"}', 400),
        ('{"name":"\ufffd"}'.encode(), 200),
    ],
)
def test_bodies_that_api_gateway_decoded(sent: bytes, status: int) -> None:
    """It replaces what is not UTF-8, so that a name would be stored that nobody sent."""
    headers = {"content-type": "application/json", "content-length": str(len(sent))}
    path, body = "/api/2.0/mlflow/experiments/create", sent.decode("utf-8", "replace")
    answer = HANDLER(event("POST", path, "", headers, body, encoded=False), None)
    assert answer["statusCode"] == status


def test_a_very_long_query() -> None:
    path = "/api/2.0/mlflow/runs/get"
    query = "run_id=" + "x" * 1_000_000 + "&a=b" * 100_000
    answer = HANDLER(event("GET", path, query, {}, None, encoded=False), None)
    assert answer["statusCode"] == 200
