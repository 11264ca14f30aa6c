"""Whatever a caller sends to the gateway, to users, to skills, to MCP servers, to SQL or to /mcp:
no route answers with a server error, and none takes long. tests/differential/test_rest_no_crash.py
does the same for the other routes."""

from __future__ import annotations

import base64
import json
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mcp_servers.app
import skills.app
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.http.handler import Handler
from mlcore.http.routes import PlainRoute, Rpc
from mlcore.repos.users import roles, users
from mlcore.wire.message import fields_of
from tests.contract import gateway_world
from tests.contract.api import called
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.lake import tables
from tests.contract.logins import named
from tests.contract.sealing import seal_here
from tests.differential.generated import anything, bodies, queries, raw_bodies, tenths, texts
from tests.doubles.providers import Told, openai, serving

__all__ = ["tables"]

Json = dict[str, Any]

DOMAINS: Final = (
    "gateway",
    "gateway_calls",
    "users",
    "skills",
    "mcp_servers",
    "sql",
    "agent_tools",
)
ROUTES: Final = [
    (domain, route)
    for domain in DOMAINS
    for app in [import_module(f"{domain}.app")]
    for route in (*app.RPCS, *getattr(app, "PLAIN_ROUTES", ()))
]
SECONDS: Final = 10.0
"""The longest that an answer may take; a query of SQL starts processes."""
WORDS: Final = st.sampled_from(
    [
        *("%00", "..", "\x00", "\ud800", "x" * 3000, "'", "-0", "NaN", "1e400", "*", "@a/b", "v1"),
        *("PRIMARY", "FALLBACK", "SEQUENTIAL", "USD", "DAYS", "GLOBAL", "REJECT", "openai", "chat"),
        *(
            "experiment",
            "MANAGE",
            "git",
            "active",
            "latest",
            "SELECT 1",
            "tags.a = 'b'",
            "tools/call",
        ),
        *(
            "name DESC",
            "eyJvZmZzZXQiOiAyfQ==",
            "http://127.0.0.1:1",
            "bearer",
            "2026-01-01T00:00:00Z",
        ),
    ]
)
VALUES: Final = st.one_of(WORDS, anything)
PLAIN_FIELDS: Final = (
    *("messages", "input", "model", "stream", "tools", "contents", "max_tokens", "response_format"),
    *("stream_options", "tool_choice", "n", "stop", "temperature", "jsonrpc", "method", "params"),
    *("id", "schemas", "userName", "active", "Operations", "members", "displayName", "username"),
    *("password", "csrf_token", "name", "emails"),
)
"""What routes read that parse their bodies themselves: calls of models, /mcp, SCIM."""
ROLES: Final = st.sampled_from(["user", "system", "assistant", "tool", "developer", "x", None])


@pytest.fixture
def known(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """What there is, by the name of the field that takes it."""
    seal_here(monkeypatch, tmp_path)
    gateway_world.allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path))

    def answer(request: Any) -> Told:
        try:
            return openai(request)
        except (KeyError, TypeError, AttributeError, IndexError):
            return Told(400, {"error": {"message": "no such request"}})

    with serving(answer) as provider:
        secret = gateway_world.saved_key(f"{provider.url}/v1", "a key")
        model = gateway_world.model("m", "openai", f"{provider.url}/v1")
        endpoint = gateway_world.endpoint("chat", [model])
        budget = gateway_world.budget("GLOBAL", 1e6)
        users.create("ann", "", is_admin=False)
        role = roles.create("readers", "default", None)
        experiment = store.api.new_experiment("fuzzed")
        for handler, path, name in (
            (skills.app.handler, "skills", "chat"),
            (mcp_servers.app.handler, "mcp-servers", "com.example/chat"),
        ):
            made = called(handler, "POST", f"/api/3.0/mlflow/{path}", {"name": name})
            assert made.status == 200, made
        monkeypatch.setenv(AUTHENTICATION, "basic")
        yield {
            **{"secret_id": secret, "model_definition_id": model, "endpoint_id": endpoint},
            **{"endpoint_name": "chat", "budget_policy_id": budget, "username": "ann"},
            **{
                "role_id": role.role_id,
                "experiment_id": experiment,
                "name": "chat",
                "version": "1",
            },
            **{
                "permission": "READ",
                "provider": "openai",
                "model_name": "gpt-4o",
                "max_results": 5,
            },
            **{"model_configs": [{"model_definition_id": model, "linkage_type": "PRIMARY"}]},
            **{"fallback_config": {"strategy": "SEQUENTIAL", "max_attempts": 2}},
            **{"routing_strategy": "REQUEST_BASED_TRAFFIC_SPLIT", "usage_tracking": False},
            **{"budget_unit": "USD", "budget_amount": 5.0, "target_scope": "GLOBAL"},
            **{"budget_action": "ALERT", "duration": {"unit": "DAYS", "value": 1}},
            **{"secret_name": "another key", "secret_value": {"api_key": "sk-0123456789"}},
            **{"resource_type": "experiment", "resource_id": experiment, "alias": "best"},
            **{"sql": "SELECT 1", "organization": "", "path": "v1/chat/completions", "key": "k"},
        }


def handler_of(domain: str) -> Handler:
    """Made while logins are required."""
    app = import_module(f"{domain}.app")
    if domain == "gateway_calls":
        from gateway_calls.replies import RESPONSE_STYLE  # noqa: PLC0415

        return lambda_handler(app.RPCS, app.PLAIN_ROUTES, RESPONSE_STYLE)
    return lambda_handler(app.RPCS, getattr(app, "PLAIN_ROUTES", ()))


_sixths = st.integers(0, 5)
_messages = st.lists(
    st.fixed_dictionaries({"role": ROLES, "content": VALUES}, optional={"tool_calls": VALUES}),
    max_size=3,
)
_plain_bodies = st.dictionaries(st.sampled_from(PLAIN_FIELDS), VALUES, max_size=6)


def _escaped(value: Any) -> str:
    return quote(str(value).encode("utf-8", "replace"), safe="")


@st.composite
def requests(draw: Any, route: Rpc | PlainRoute, known: Json) -> Json:
    """Path, query and body of an event. Some fields are right, so that others are reached."""
    message: Any = getattr(route, "message", None)
    path = route.path if isinstance(route, PlainRoute) else f"/api{route.path}"
    for name in [part.split("}")[0] for part in path.split("{")[1:]]:
        field = name.removesuffix("+")
        is_right = field in known and draw(_sixths)
        value = known[field] if is_right else draw(st.one_of(texts, WORDS))
        path = path.replace(f"{{{name}}}", str(value).encode("utf-8", "replace").decode())
    if message is None:
        fields = draw(_plain_bodies)
        if draw(_sixths):
            fields |= {"model": "chat", "messages": draw(_messages)}
        body = json.dumps(draw(anything) if draw(tenths) == 0 else fields).encode()
        query = "&".join(
            f"{name}={_escaped(value)}" for name, value in known.items() if not draw(_sixths)
        )
        return {"path": path, "query": query, "body": body}
    names = [field.name for field in fields_of(message)]
    right_fields = {name: known[name] for name in names if name in known and draw(_sixths)}
    if route.method == "GET":
        more = [f"{name}={_escaped(value)}" for name, value in right_fields.items()]
        return {"path": path, "query": "&".join([*more, draw(queries(message))]), "body": b""}
    if draw(_sixths) == 0:
        return {"path": path, "query": "", "body": draw(raw_bodies(message))}
    sent = {**draw(bodies(message)), **right_fields}
    for name in names:
        if draw(tenths) == 0:
            sent[name] = draw(VALUES)
    return {"path": path, "query": "", "body": json.dumps(sent).encode()}


def read_answer(answer: Json) -> tuple[int, str]:
    body = answer["body"]
    text = body if isinstance(body, str) else b"".join(body).decode("utf-8", "replace")
    return answer["statusCode"], text


@pytest.mark.parametrize(
    ("domain", "route"), ROUTES, ids=[f"{route.method} {route.path}" for _, route in ROUTES]
)
def test_route(
    known: Json, domain: str, route: Rpc | PlainRoute, request: pytest.FixtureRequest
) -> None:
    handler = handler_of(domain)
    if domain == "sql":
        request.getfixturevalue("tables").follow()
    if domain == "mcp_servers":
        known["name"] = "com.example/chat"

    @settings(
        max_examples=24 * EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(sent=requests(route, known), is_admin=st.sampled_from([True, True, True, False]))
    def check(sent: Json, *, is_admin: bool) -> None:
        event = {
            "version": "2.0",
            "rawPath": sent["path"],
            "rawQueryString": sent["query"],
            "headers": {"content-type": "application/json", "host": "localhost"},
            "requestContext": {
                "http": {"method": route.method},
                "requestId": "test",
                "authorizer": named("root" if is_admin else "ann", is_admin=is_admin),
            },
            "isBase64Encoded": True,
            "body": base64.b64encode(sent["body"]).decode(),
        }
        started = time.process_time()
        status, text = read_answer(handler(event, None))
        assert time.process_time() - started < SECONDS
        # 501 names what this server does not have, and 502 a provider's fault.
        assert status < 500 or status in {501, 502}, (status, text)

    check()
