"""Anthropic's SDK: messages, streams, tools, structured answers, pictures, counts, errors."""

from __future__ import annotations

from typing import Any

import anthropic

from tests.e2e.sdks.observing import (
    CITY,
    CLAUDE,
    FAILURES,
    PIXEL,
    SHORT,
    STREAM_FAILURES,
    Call,
    City,
    Target,
    failures,
    main,
)


def said(content: Any) -> dict[str, Any]:
    return {
        "model": CLAUDE,
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": content}],
    }


def calls_at(target: Target) -> dict[str, Call]:
    client: Any = anthropic.Anthropic(
        base_url=target.anthropic, api_key=target.key, default_headers=target.headers, max_retries=0
    )
    messages = client.messages
    tools = [
        {"name": "lookup", "description": "Of a city", "input_schema": CITY},
        {"name": "now", "input_schema": {"type": "object", "properties": {}}},
    ]
    cached = {"type": "ephemeral", "ttl": "5m"}
    pictures = [
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
        },
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "text", "text": "What is it?", "cache_control": cached},
    ]
    results = {
        **said("Zürich?"),
        "messages": [
            {"role": "user", "content": "Zürich?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"},
                    {"type": "text", "text": "tool_result"},
                ],
            },
        ],
    }
    thinking = {"type": "enabled", "budget_tokens": 1024}

    def streamed_by_helper() -> Any:
        with messages.stream(**said("hi"), tools=tools) as stream:
            kinds = [event.type for event in stream]
            return kinds, stream.get_final_message()

    return {
        "message": lambda: messages.create(
            **said("Grüezi"), system="Be brief.", metadata={"user_id": "ä"}
        ),
        "thinking": lambda: messages.create(
            **{**said("hi"), "max_tokens": 3000}, thinking=thinking
        ),
        "stream": lambda: list(messages.create(**said("Grüezi"), stream=True)),
        "stream of thinking": lambda: list(
            messages.create(**{**said("hi"), "max_tokens": 3000}, thinking=thinking, stream=True)
        ),
        "tools": lambda: messages.create(**said("hi"), tools=tools, tool_choice={"type": "any"}),
        "streamed tools": lambda: list(messages.create(**said("hi"), tools=tools, stream=True)),
        "stream by helper": streamed_by_helper,
        "results of tools": lambda: messages.create(**results, tools=tools),
        "pictures": lambda: messages.create(**said(pictures)),
        "parsed": lambda: messages.parse(**said("city"), output_format=City),
        "of a beta": lambda: client.beta.messages.create(
            **said("hi"), betas=["context-1m-2025-08-07"]
        ),
        "count of tokens": lambda: messages.count_tokens(
            model=CLAUDE, messages=said("hi")["messages"], tools=tools
        ),
        **failures("message", lambda text: messages.create(**said(text)), (*FAILURES, 529)),
        "message again": lambda: messages.create(**said("hi")),
        **failures(
            "stream",
            lambda text: list(messages.create(**said(text), stream=True)),
            (*STREAM_FAILURES, 529),
        ),
        "another message": lambda: messages.create(**said("hi")),
        "timeout": lambda: client.with_options(timeout=SHORT).messages.create(**said("wait")),
    }


main(calls_at)
