"""Nobody uses models beyond a budget or a limit by hiding a call's tokens: with a stream that
reports none, by leaving it before they are reported, by another model's name at the proxy, or by a
provider's false numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

import gateway_calls.app
from mlcore.gateway.budgets import read_spending
from mlcore.ids import now_ms
from mlcore.providers import token_counts
from mlcore.repos.gateway import budgets
from mlcore.repos.settings import stored_settings
from tests.contract.conftest import Store
from tests.contract.gateway_requests import post
from tests.contract.gateway_world import PRICE, allow_local, budget, endpoint, model
from tests.contract.sealing import seal_here
from tests.doubles.providers import Asked, Provider, Told, anthropic, gemini, openai, serving

Json = dict[str, Any]

SAID: Final = [{"role": "user", "content": "hello there " * 20}]
CHAT: Final = {"model": "chat", "messages": SAID, "stream": True, "max_tokens": 9}
PATHS: Final = ("mlflow/v1/chat/completions", "openai/v1/chat/completions")
PROXY: Final = "proxy/chat/v1/chat/completions"


@pytest.fixture(autouse=True)
def sealed(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(openai) as made:
        models = [model("m", "openai", f"{made.url}/v1", model_name="gpt-4o-mini")]
        endpoint("chat", models, usage_tracking=True)
        budget("GLOBAL", 100.0)
        yield made


def spent() -> float:
    return read_spending(budgets.find_all(), now_ms())[0]


def left(path: str, body: Json, parts: int) -> int:
    """The status of a stream whose client leaves after some parts."""
    event = {
        "rawPath": f"/gateway/{path}",
        "headers": {},
        "requestContext": {"http": {"method": "POST"}},
        "body": json.dumps(body),
    }
    answer = gateway_calls.app.handler(event, SimpleNamespace(streams=True))
    if answer["statusCode"] == 200:
        for _ in range(parts):
            next(answer["body"])
        answer["body"].close()
    return int(answer["statusCode"])


EXACT: Final = 11 * 0.15e-6 + 7 * 0.6e-6
"""What 11 tokens of the request and 7 of the answer cost."""
LEAST: Final = len(json.dumps(SAID)) // 4 * 0.15e-6 + 7 * 0.6e-6


def test_streams_count_whether_or_not_they_report_tokens(provider: Provider) -> None:
    """The proxy sends the request as it is. Elsewhere a caller who wants no report gets none, and
    the gateway does: the exact cost includes thoughts that are not in the answer."""
    answered = 0
    for path in (*PATHS, PROXY):
        for options in ({}, {"include_usage": False}, {"include_usage": 0}, None, []):
            before = spent()
            status, _, answer = post(path, {**CHAT, "stream_options": options})
            assert status in {200, 400, 422}
            if status != 200:
                continue
            answered += 1
            is_asked = (provider.asked[-1].body.get("stream_options") or {}).get("include_usage")
            assert bool(is_asked) == (path != PROXY)
            # The path of OpenAI's own form tells it only to those who ask.
            is_told = path.startswith("mlflow/") and options in ({}, None, [])
            assert ("prompt_tokens" in answer) == is_told
            cost = spent() - before
            if is_asked:
                assert cost == pytest.approx(EXACT), (path, options)
            else:
                assert LEAST <= cost <= 3 * LEAST, (path, options)
    assert answered == len(provider.asked) > 9


@pytest.mark.parametrize("path", [*PATHS, PROXY])
def test_streams_that_are_left(provider: Provider, path: str) -> None:
    stored_settings.put("gateway_limits", {"endpoints": {"chat": {"tokens_per_day": 200}}})
    assert left(path, CHAT, 12) == 200
    least = len(json.dumps(SAID)) // 4 * 0.15e-6 + 5 * 0.6e-6
    assert least <= spent() <= 3 * least
    assert [left(path, CHAT, 12) for _ in range(5)][-1] == 429
    stored_settings.delete("gateway_limits")


@pytest.mark.parametrize(
    ("kind", "answer", "path"),
    [
        ("anthropic", anthropic, "anthropic/v1/messages"),
        ("gemini", gemini, "gemini/v1beta/models/other:streamGenerateContent"),
    ],
)
def test_streams_of_others_that_are_left(kind: str, answer: Any, path: str) -> None:
    names = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}
    with serving(answer) as made:
        endpoint("other", [model("o", kind, f"{made.url}/v1", model_name=names[kind])])
        budget("GLOBAL", 100.0)
        body = {**CHAT, "model": "other", "contents": [{"parts": [{"text": "hello " * 40}]}]}
        assert left(path, body, 2) == 200
    assert spent() > 0


def test_a_model_that_the_request_names(provider: Provider) -> None:
    """The proxy sends the body as it is, so the model may be dearer than the endpoint's."""
    body = {"messages": SAID, "model": "gpt-4o"}
    assert post(PROXY, body)[0] == 200
    assert spent() == pytest.approx(PRICE)
    assert post(PROXY, {**body, "model": "no-such-model"})[0] == 200
    assert spent() == pytest.approx(PRICE + 11 * 0.15e-6 + 7 * 0.6e-6)


@pytest.mark.parametrize(
    "tokens",
    [str(token_counts.MAX_COUNT), "9" * 10, "9" * 40, "9" * 400, "-5", "1e308", "true", '"9"'],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_false_numbers_of_a_provider(provider: Provider, tokens: str, is_stream: bool) -> None:
    stored_settings.put("gateway_limits", {"endpoints": {"chat": {"tokens_per_day": 1000}}})
    whole = openai(Asked("/chat/completions", {}, {**CHAT, "stream": False})).body
    used = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), "@")
    text = json.dumps({**whole, "usage": used}).replace('"@"', tokens)
    provider.answer = lambda _: Told(parts=(text.encode(),))
    if is_stream:
        event = f"data: {text.replace('message', 'delta')}\n\n".encode()
        provider.answer = lambda _: Told(parts=(event,), content_type="text/event-stream")
    for path in (*PATHS, PROXY):
        assert post(path, {**CHAT, "stream": is_stream})[0] == 200
    # What is reported falsely counts like what is not: in a stream, and in the proxy the request.
    request = len(json.dumps({**CHAT, "stream": False})) // 4 * 0.15e-6
    assert 0 <= spent() <= (3 * LEAST if is_stream else 1.01 * request)
    stored_settings.delete("gateway_limits")


@pytest.mark.parametrize("path", [*PATHS, PROXY])
@pytest.mark.parametrize(
    ("reported", "cost", "total"),
    [
        ({"total_tokens": 0}, EXACT, 18),
        ({"total_tokens": 17}, EXACT, 18),
        ({"total_tokens": 20}, EXACT, 20),
        ({"prompt_tokens_details": {"cached_tokens": 9_000_000}}, 11 * 0.075e-6 + 7 * 0.6e-6, 18),
        ({"prompt_tokens_details": {"cached_tokens": 11}}, 11 * 0.075e-6 + 7 * 0.6e-6, 18),
        ({"prompt_tokens": None, "prompt_tokens_details": {"cached_tokens": 9_000_000}}, None, 18),
    ],
)
def test_numbers_that_contradict_one_another(
    provider: Provider, path: str, reported: Json, cost: float | None, total: int
) -> None:
    """No total below its parts hides tokens from a limit, and no more tokens come from a cache than
    were sent."""
    used = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, **reported}
    whole = openai(Asked("/chat/completions", {}, {**CHAT, "stream": False})).body
    provider.answer = lambda _: Told(body={**whole, "usage": used})
    stored_settings.put("gateway_limits", {"endpoints": {"chat": {"tokens_per_day": total + 1}}})
    assert post(path, {**CHAT, "stream": False})[0] == 200
    assert spent() == pytest.approx(7 * 0.6e-6 if cost is None else cost)
    assert [post(path, {**CHAT, "stream": False})[0] for _ in range(2)] == [200, 429]
    stored_settings.delete("gateway_limits")


def test_the_largest_numbers_that_a_provider_may_tell(provider: Provider) -> None:
    """Are those of the largest models, so a false one costs what one call of them does."""
    most = token_counts.MAX_COUNT - 1
    used = {"prompt_tokens": most, "completion_tokens": 0, "total_tokens": most}
    whole = openai(Asked("/chat/completions", {}, {**CHAT, "stream": False})).body
    provider.answer = lambda _: Told(body={**whole, "usage": used})
    assert post(PATHS[0], {**CHAT, "stream": False})[0] == 200
    assert 10_500_000 * 0.15e-6 < spent() < 3
