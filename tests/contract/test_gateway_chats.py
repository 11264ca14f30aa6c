"""Chats through the gateway's endpoints: what providers are asked, what comes back, what is asked
when one fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlcore.db import deadline
from mlcore.errors import GatewayCallFailed, ResourceDoesNotExist
from mlcore.gateway import guarded_calls
from tests.contract.conftest import Store
from tests.contract.gateway_requests import SAID, TOOL
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.doubles.providers import Told, anthropic, failing, openai, serving


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


def test_openai(store: Store) -> None:
    with serving(openai) as provider:
        endpoint("chat", [model("m", "openai", f"{provider.url}/v1", model_name="gpt-x")])
        answer = guarded_calls.complete_chat(
            "default", "chat", {"messages": SAID, "temperature": 0.5}
        )
        (request,) = provider.asked
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "gpt-x", "n": 1, "temperature": 0.5, "messages": SAID}
    message = {
        "role": "assistant",
        "content": "echo: hello there",
        "tool_calls": None,
        "refusal": None,
    }
    assert answer == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "gpt-x",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        "provider": "openai",
    }


def test_anthropic_with_tools(store: Store) -> None:
    with serving(anthropic) as provider:
        endpoint("chat", [model("m", "anthropic", f"{provider.url}/v1", model_name="claude-x")])
        call = {
            "id": "toolu_0",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
        }
        turns = [
            *SAID,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "toolu_0", "content": "sunny"},
        ]
        asked_for = {"tools": [TOOL], "tool_choice": "required", "temperature": 1, "stop": ["END"]}
        answer = guarded_calls.complete_chat("default", "chat", {"messages": turns, **asked_for})
        (request,) = provider.asked
    assert request.path == "/v1/messages"
    assert (request.headers["x-api-key"], request.headers["anthropic-version"]) == (
        KEY,
        "2023-06-01",
    )
    used = {"type": "tool_use", "id": "toolu_0", "name": "weather", "input": {"city": "Rome"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_0", "content": "sunny"}
    assert request.body == {
        "model": "claude-x",
        "system": "Be brief.",
        "messages": [
            SAID[1],
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [result]},
        ],
        "max_tokens": 8192,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "tools": [
            {
                "name": "weather",
                "description": "Of a city",
                "input_schema": TOOL["function"]["parameters"],  # type: ignore[index]
            }
        ],
        "tool_choice": {"type": "any"},
    }
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (called,) = choice["message"]["tool_calls"]
    assert json.loads(called["function"]["arguments"]) == {"city": "sunny"}
    assert answer["usage"] == {
        "prompt_tokens": 14,
        "completion_tokens": 6,
        "total_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 4},
    }


def test_the_next_model_is_asked_when_one_fails(store: Store) -> None:
    with serving(failing(404)) as broken, serving(anthropic) as other, serving(openai) as last:
        endpoint(
            "chat",
            [model("a", "openai", broken.url)],
            [model("b", "anthropic", other.url), model("c", "openai", last.url)],
        )
        answer = guarded_calls.complete_chat("default", "chat", {"messages": SAID})
        assert answer["provider"] == "anthropic"
        assert (len(broken.asked), len(other.asked), len(last.asked)) == (1, 1, 0)
        other.answer = failing(403)
        last.answer = failing(422, "no tools")
        with pytest.raises(GatewayCallFailed) as failed:
            guarded_calls.complete_chat("default", "chat", {"messages": SAID})
    assert failed.value.status == 422
    assert failed.value.detail == "All 3 fallback attempts failed. Last error: 422: no tools"


def test_a_provider_that_refuses_is_quoted(store: Store) -> None:
    with serving(failing(401, "no such key")) as provider:
        endpoint("chat", [model("m", "openai", provider.url)])
        with pytest.raises(GatewayCallFailed) as failed:
            guarded_calls.complete_chat("default", "chat", {"messages": SAID})
    assert (failed.value.status, failed.value.detail) == (401, "no such key")


def test_nothing_private_is_reached(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where it was allowed when the secret was made."""
    with serving(openai) as provider:
        endpoint("chat", [model("m", "openai", provider.url)])
        monkeypatch.delenv("MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS")
        with pytest.raises(GatewayCallFailed, match="is not a public IP address") as failed:
            guarded_calls.complete_chat("default", "chat", {"messages": SAID})
        assert (failed.value.status, provider.asked) == (502, [])


@pytest.mark.parametrize(
    ("chat", "reason"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"messages": SAID, "temperature": 3}, "temperature"),
        ({"messages": SAID, "n": 0}, "n"),
        ({"messages": SAID, "tools": [{"type": "function"}]}, "tools"),
        ({"messages": SAID, "tool_choice": "always"}, "tool_choice"),
        ({"messages": SAID, "response_format": {"type": "xml"}}, "response_format"),
    ],
)
def test_what_is_no_chat(chat: dict[str, Any], reason: str) -> None:
    with pytest.raises(GatewayCallFailed, match=f"^Invalid chat payload: {reason}") as failed:
        guarded_calls.complete_chat("default", "chat", chat)
    assert failed.value.status == 400


def test_a_provider_that_drips_holds_nobody_up(store: Store) -> None:
    """An answer that comes in parts, each in time, and does not end."""
    with serving(openai) as provider:
        provider.answer = lambda request: Told(parts=(" ",) * 60, pause=0.05)
        endpoint("chat", [model("m", "openai", provider.url)])
        with deadline.within(None, 1.5), pytest.raises(GatewayCallFailed) as failed:
            guarded_calls.complete_chat("default", "chat", {"messages": SAID})
    assert (failed.value.status, failed.value.detail) == (
        504,
        "The provider's answer did not end in time.",
    )


def test_no_such_endpoint(store: Store) -> None:
    with pytest.raises(ResourceDoesNotExist, match=r"^GatewayEndpoint not found \(name='none'\)$"):
        guarded_calls.complete_chat("default", "none", {"messages": SAID})
