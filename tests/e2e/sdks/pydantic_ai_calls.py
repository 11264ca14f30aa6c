"""Pydantic AI's agents with models of OpenAI, Anthropic and Google: texts, streams, tools,
structured answers, pictures, errors."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tests.e2e.sdks.observing import (
    CLAUDE,
    GEMINI,
    GPT,
    PIXEL,
    SHORT,
    STREAM_FAILURES,
    Call,
    City,
    Target,
    failures,
    main,
)


def lookup(city: str) -> str:
    """Finds a city."""
    return f"found {city}"


def model_at(target: Target, name: str, seconds: float) -> Any:
    """A model whose client waits so long."""
    common: dict[str, Any] = {
        "api_key": target.key,
        "default_headers": target.headers,
        "max_retries": 0,
        "timeout": seconds,
    }
    if name == "anthropic":
        client = anthropic.AsyncAnthropic(base_url=target.anthropic, **common)
        return AnthropicModel(CLAUDE, provider=AnthropicProvider(anthropic_client=client))
    if name == "google":
        options = types.HttpOptions(
            base_url=target.gemini, headers=target.headers, timeout=int(seconds * 1000)
        )
        google = genai.Client(api_key=target.key, http_options=options)
        return GoogleModel(GEMINI, provider=GoogleProvider(client=google))
    provider = OpenAIProvider(openai_client=openai.AsyncOpenAI(base_url=target.openai, **common))
    kind = OpenAIResponsesModel if name == "responses" else OpenAIChatModel
    return kind(GPT, provider=provider)


def calls_at(target: Target) -> dict[str, Call]:
    # Each call has a loop of its own, and so clients of its own.
    def ran(name: str, work: Callable[[Any], Any], seconds: float = 60.0) -> Call:
        return lambda: asyncio.run(work(model_at(target, name, seconds)))

    async def text(model: Any) -> Any:
        return await _result(Agent(model, instructions="Be brief."), "Grüezi")

    async def stream(model: Any) -> Any:
        return await _streamed("Grüezi", model)

    async def tools(model: Any) -> Any:
        return await _result(Agent(model, tools=[lookup]), "Zürich?")

    async def structured(model: Any) -> Any:
        return await _result(Agent(model, output_type=City), "city")

    async def native(model: Any) -> Any:
        return await _result(Agent(model, output_type=NativeOutput(City)), "city")

    async def picture(model: Any) -> Any:
        content = BinaryContent(base64.b64decode(PIXEL), media_type="image/png")
        return await _result(Agent(model), ["What is it?", content])

    async def waits(model: Any) -> Any:
        return await Agent(model).run("wait")

    def fails(name: str, said: str) -> Any:
        async def failing(model: Any) -> Any:
            return await Agent(model).run(said)

        return ran(name, failing)()

    def stream_fails(name: str, said: str) -> Any:
        async def failing(model: Any) -> Any:
            return await _streamed(said, model)

        return ran(name, failing)()

    calls: dict[str, Call] = {}
    for name in ("openai", "responses", "anthropic", "google"):
        calls |= {
            f"{name}: text": ran(name, text),
            f"{name}: stream": ran(name, stream),
            f"{name}: tools": ran(name, tools),
            f"{name}: structured": ran(name, structured),
            f"{name}: native structure": ran(name, native),
            f"{name}: picture": ran(name, picture),
            **failures(f"{name}:", partial(fails, name)),
            f"{name}: again": ran(name, text),
            **failures(f"{name}: stream", partial(stream_fails, name), STREAM_FAILURES),
            f"{name}: timeout": ran(name, waits, SHORT),
        }
    return calls


async def _result(agent: Agent[None, Any], said: Any) -> Any:
    """The answer, all messages, and what was used."""
    result = await agent.run(said)
    return result.output, result.all_messages(), result.usage


async def _streamed(said: str, model: Any) -> Any:
    async with Agent(model).run_stream(said) as result:
        parts = [part async for part in result.stream_text(delta=True, debounce_by=None)]
        return parts, result.all_messages(), result.usage


main(calls_at)
