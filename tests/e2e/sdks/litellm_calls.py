"""LiteLLM's SDK with models of OpenAI, Anthropic and Gemini: completions, streams, tools,
structured answers, embeddings, errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import litellm

from tests.e2e.sdks.observing import (
    CITY,
    CLAUDE,
    GEMINI,
    GPT,
    PIXEL,
    SHORT,
    STREAM_FAILURES,
    Call,
    Target,
    failures,
    main,
)

litellm.suppress_debug_info = True
SAID: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Grüezi"},
]
TOOL = {
    "type": "function",
    "function": {"name": "lookup", "description": "Of a city", "parameters": CITY},
}


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def calls_at(target: Target) -> dict[str, Call]:
    common = {"api_key": target.key, "extra_headers": target.headers, "max_retries": 0}
    calls: dict[str, Call] = {}
    for provider, more in (
        ("openai", {"model": f"openai/{GPT}", "api_base": target.openai}),
        ("anthropic", {"model": f"anthropic/{CLAUDE}", "api_base": target.anthropic}),
        ("gemini", {"model": f"gemini/{GEMINI}", "api_base": f"{target.gemini}/v1beta"}),
    ):
        ask = partial(litellm.completion, **more, **common)
        calls |= {f"{provider}: {name}": call for name, call in _chats(ask).items()}
    calls["openai: embeddings"] = lambda: litellm.embedding(
        model=f"openai/{GPT}", input=["a", "bcd"], api_base=target.openai, **common
    )
    calls["openai: response"] = lambda: litellm.responses(
        model=f"openai/{GPT}", input="hi", api_base=target.openai, **common
    )
    return calls


def _chats(ask: Callable[..., Any]) -> dict[str, Call]:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    looked: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "?"}, picture]}]
    schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    return {
        "chat": lambda: ask(messages=SAID),
        "stream": lambda: list(ask(messages=SAID, stream=True)),
        "stream with usage": lambda: list(
            ask(messages=SAID, stream=True, stream_options={"include_usage": True})
        ),
        "tools": lambda: ask(messages=SAID, tools=[TOOL]),
        "streamed tools": lambda: list(ask(messages=SAID, tools=[TOOL], stream=True)),
        "json schema": lambda: ask(messages=said("city"), response_format=schema),
        "picture": lambda: ask(messages=looked),
        **failures("", lambda text: ask(messages=said(text))),
        "again": lambda: ask(messages=SAID),
        **failures(
            "stream", lambda text: list(ask(messages=said(text), stream=True)), STREAM_FAILURES
        ),
        "timeout": lambda: ask(messages=said("wait"), timeout=SHORT),
    }


main(calls_at)
