"""Errors of the gateway as SDKs read them: beside MLflow's ``detail``, what the provider answered,
or the gateway's own refusal in the form of the provider whose SDK calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_calls import app
from gateway_calls.error_forms import sdk_fields
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.environment import AUTHENTICATION
from mlcore.errors import GatewayCallFailed
from mlcore.http import lambda_handler
from mlcore.repos.users import users
from tests.contract.conftest import Store
from tests.contract.gateway_requests import ask, post
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.logins import named
from tests.contract.sealing import seal_here
from tests.doubles.providers import Asked, Told, serving

Json = dict[str, Any]

SAID = [{"role": "user", "content": "hello"}]
CHAT: Json = {"model": "openai", "messages": SAID}
MESSAGE: Json = {"model": "anthropic", "max_tokens": 9, "messages": SAID}
CONTENT: Json = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
OWN_FORMS: list[tuple[str, Json, str]] = [
    ("openai/v1/chat/completions", CHAT, "openai"),
    ("openai/v1/chat/completions", {**CHAT, "stream": True}, "openai"),
    ("openai/v1/embeddings", {"model": "openai", "input": "a"}, "openai"),
    ("proxy/openai/v1/chat/completions", CHAT, "openai"),
    ("anthropic/v1/messages", MESSAGE, "anthropic"),
    ("anthropic/v1/messages", {**MESSAGE, "stream": True}, "anthropic"),
    ("anthropic/v1/messages/count_tokens", MESSAGE, "anthropic"),
    ("proxy/anthropic/v1/messages", MESSAGE, "anthropic"),
    ("gemini/v1beta/models/gemini:generateContent", CONTENT, "gemini"),
    ("gemini/v1beta/models/gemini:streamGenerateContent", CONTENT, "gemini"),
    ("proxy/gemini/v1beta/models/x:countTokens", CONTENT, "gemini"),
    ("proxy/gemini/v1beta/models/x:batchEmbedContents", {"requests": []}, "gemini"),
    ("proxy/anthropic/v1/messages/count_tokens", MESSAGE, "anthropic"),
    ("proxy/anthropic/v1/messages/batches", {"requests": []}, "anthropic"),
]
"""Paths with a provider's own form, bodies, and the provider, which is the endpoint's name too."""
COMMON_FORMS: list[tuple[str, Json]] = [
    ("mlflow/v1/chat/completions", CHAT),
    ("mlflow/v1/chat/completions", {**CHAT, "stream": True}),
    ("openai/mlflow/invocations", {"messages": SAID}),
]


@pytest.fixture(autouse=True)
def provider(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    with serving(lambda _: Told(500, {})) as running:
        for name, path in (("openai", "/v1"), ("anthropic", "/v1"), ("gemini", "/v1beta")):
            endpoint(name, [model(f"m-{name}", name, f"{running.url}{path}", model_name="x")])
        yield running


def refusing(status: int, body: Any) -> Callable[[Asked], Told]:
    return lambda _: Told(status, body, headers={"x-should-retry": "false"})


@pytest.mark.parametrize(("path", "body", "name"), OWN_FORMS)
@pytest.mark.parametrize(
    "refusal",
    [
        {"error": {"message": "no", "type": "t", "param": "p", "code": "context_length_exceeded"}},
        {"type": "error", "error": {"type": "t", "message": "no"}, "request_id": "req_1"},
        {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT", "details": [{}]}},
        {"object": "error", "message": "no"},
    ],
)
def test_what_the_provider_answered(
    provider: Any, path: str, body: Json, name: str, refusal: Json
) -> None:
    for status in (400, 403, 429, 500):
        provider.answer = refusing(status, refusal)
        actual, _, text = post(path, body)
        told = json.loads(text)
        assert actual == status
        assert "no" in str(told.pop("detail"))
        assert told == refusal


@pytest.mark.parametrize(("path", "body", "name"), OWN_FORMS)
def test_a_field_of_the_provider_does_not_replace_mlflows(
    provider: Any, path: str, body: Json, name: str
) -> None:
    provider.answer = refusing(400, {"detail": "theirs", "error": {"message": "no"}})
    assert json.loads(post(path, body)[2]) == {"detail": "no", "error": {"message": "no"}}


@pytest.mark.parametrize(("path", "body"), COMMON_FORMS)
def test_a_form_of_all_providers(provider: Any, path: str, body: Json) -> None:
    """OpenAI's SDK reads it, whatever the provider answered."""
    provider.answer = refusing(400, {"error": {"message": "no", "code": "too_long", "more": 1}})
    expected = {"message": "no", "type": "invalid_request_error", "param": None, "code": "too_long"}
    assert json.loads(post(path, body)[2]) == {"detail": "no", "error": expected}


@pytest.mark.parametrize(("path", "body", "name"), OWN_FORMS)
def test_a_credential_in_a_refusal(provider: Any, path: str, body: Json, name: str) -> None:
    """In any field of it, and in a name."""
    provider.answer = refusing(
        401, {"error": {"message": "no", "key": KEY, KEY: [f"a{KEY}b"]}, "of": {"key": KEY}}
    )
    text = post(path, body)[2]
    assert KEY not in text
    assert text.count("[REDACTED]") == 4


@pytest.mark.parametrize(("path", "body", "name"), OWN_FORMS)
def test_what_the_gateway_refuses_itself(path: str, body: Json, name: str) -> None:
    """A request that is no JSON, in the form of the path's SDK."""
    status, _, text = post(path, "{")
    told = json.loads(text)
    message = told["detail"]
    assert (status, message[:20]) == (400, "Invalid JSON payload")
    kind = "invalid_request_error"
    forms: dict[str, Json] = {
        "openai": {"error": {"message": message, "type": kind, "param": None, "code": None}},
        "anthropic": {"type": "error", "error": {"type": kind, "message": message}},
        "gemini": {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}},
    }
    assert told == {"detail": message, **forms[name]}


def test_who_may_not_call(provider: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal is MLflow's, and tells nothing of the endpoint, not even whether it exists."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    monkeypatch.setenv("DEFAULT_PERMISSION", "READ")
    handler = lambda_handler((), app.PLAIN_ROUTES, RESPONSE_STYLE)
    users.create("ann", "", is_admin=False)
    for path, body, name in OWN_FORMS:
        told = [
            ask(
                "POST",
                path.replace(f"/{name}", f"/{other}")
                if path.startswith(("proxy", "gemini"))
                else path,
                {**body, "model": other},
                handler=handler,
                caller=named("ann"),
            )
            for other in (name, "none")
        ]
        assert (told[0][0], told[0][2]) == (403, "Permission denied")
        assert told[0] == told[1]
    assert provider.asked == []


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
def test_an_endpoint_with_the_name_of_a_provider(name: str, provider: Any) -> None:
    """MLflow's paths have one form, whatever the endpoint is called."""
    provider.answer = refusing(503, {})
    status, _, body = post(f"{name}/mlflow/invocations", {"messages": SAID})
    error = json.loads(body)["error"]
    assert (status, set(error)) == (503, {"message", "type", "param", "code"})


def test_fallbacks_hide_no_code(provider: Any) -> None:
    """SDKs shorten a chat that is too long because of the code."""
    models = [
        model(f"long-{linkage}", "openai", f"{provider.url}/v1", model_name="x")
        for linkage in ("first", "second")
    ]
    endpoint("long", models[:1], models[1:])
    refusal = {"message": "too long", "type": "t", "param": "p", "code": "context_length_exceeded"}
    provider.answer = refusing(400, {"error": refusal})
    for path in ("mlflow/v1/chat/completions", "openai/v1/chat/completions"):
        status, _, answer = post(path, {**CHAT, "model": "long"})
        error = json.loads(answer)["error"]
        assert (status, error["code"], error["type"]) == (400, "context_length_exceeded", "t")


@pytest.mark.parametrize(("path", "body", "name"), OWN_FORMS)
def test_a_refusal_in_plain_text(provider: Any, path: str, body: Json, name: str) -> None:
    """SDKs read it as an error of the provider's form, of which a text has none."""
    provider.answer = lambda _: Told(409, b"no", content_type="text/plain")
    status, _, text = post(path, body)
    told = json.loads(text)
    assert (status, told["error"]["message"]) == (409, "no")
    kind = told["error"]["status" if name == "gemini" else "type"]
    assert kind.lower() in {"invalid_request_error", "invalid_argument"}


@pytest.mark.parametrize(("path", "body", "name"), OWN_FORMS)
def test_a_list_of_one_refusal(provider: Any, path: str, body: Json, name: str) -> None:
    """As Gemini's OpenAI-compatible API answers."""
    refusal = {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}
    provider.answer = refusing(400, [refusal])
    assert json.loads(post(path, body)[2]) == {"detail": "no", **refusal}


@pytest.mark.parametrize("path", ["chat/completions", "embeddings"])
def test_a_mistake_without_a_type_of_its_own(path: str) -> None:
    """Of MLflow's, for example a model that the endpoint does not need."""
    for status in (402, 405, 409, 418, 422):
        fields = sdk_fields(GatewayCallFailed(status, "no"), f"/gateway/openai/v1/{path}")
        assert fields["error"]["type"] == "invalid_request_error"
