"""Headers of the gateway's answers: how long a call took, and when to try again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gateway_calls.app
from gateway_calls.durations import DURATION, OVERHEAD
from tests.contract.api import Answer, called
from tests.contract.conftest import Store
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.doubles.providers import Told, openai, serving


@pytest.fixture(autouse=True)
def local_providers(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


def chat(name: str, **more: Any) -> Answer:
    body = {"model": name, "messages": [{"role": "user", "content": "hello"}], **more}
    path = "/gateway/mlflow/v1/chat/completions"
    return called(gateway_calls.app.handler, "POST", path, body)


def test_how_long_a_call_took() -> None:
    with serving(openai) as provider:
        endpoint("chat", [model("m", "openai", f"{provider.url}/v1")])
        answered, missing = chat("chat"), chat("nowhere")
        assert (answered.status, missing.status) == (200, 404)
        assert 0 <= int(answered.headers[OVERHEAD]) <= int(answered.headers[DURATION])
        assert int(missing.headers[DURATION]) >= 0
        assert OVERHEAD not in missing.headers, "no provider was asked"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_when_to_try_again(*, is_streamed: bool) -> None:
    """The provider's own header, also if the last fallback refuses."""
    refusal = Told(429, {"error": {"message": "slow down"}}, headers={"Retry-After": "17"})
    with serving(lambda request: refusal) as provider:
        models = [model(name, "openai", f"{provider.url}/v1") for name in ("first", "second")]
        endpoint("one", models[:1])
        endpoint("two", models[:1], models[1:])
        for name in ("one", "two"):
            answer = chat(name, stream=is_streamed)
            assert (answer.status, answer.headers["retry-after"]) == (429, "17")
            assert OVERHEAD in answer.headers
