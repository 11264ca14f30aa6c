"""Calls the AI gateway with OpenAI's and Anthropic's clients; run by test_gateway.py in an
environment that has them."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from typing import Any

import anthropic
import openai

URL, USER, PASSWORD = sys.argv[1:4]
LOGIN = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
HEADERS = {"X-MLflow-Authorization": LOGIN}
SAID: list[Any] = [{"role": "user", "content": "hello there"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def client(base: str) -> Any:
    return openai.OpenAI(
        base_url=f"{URL}/gateway/{base}", api_key="own", default_headers=HEADERS, max_retries=0
    )


def refused(kind: type[openai.APIStatusError], call: Callable[[], Any]) -> str:
    """What the answer says."""
    try:
        answer = call()
    except kind as error:
        return str(error.response.text)
    raise AssertionError(f"not refused: {answer}")


def chats(base: str) -> None:
    """Whole, streamed, with a tool, and refused."""
    completions = client(base).chat.completions
    answer = completions.create(model="chat", messages=SAID)
    assert answer.choices[0].message.content == "echo: hello there", answer
    assert answer.usage.total_tokens == 18, answer
    stream = completions.create(model="chat", messages=SAID, stream=True)
    parts = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert "".join(parts) == "echo: hellothere", parts
    assert len(parts) > 2, parts
    tool = {"name": "weather", "description": "Of a city", "parameters": PARAMETERS}
    for model in ("chat", "claude") if base.startswith("mlflow") else ("chat",):
        called = completions.create(
            model=model, messages=SAID, tools=[{"type": "function", "function": tool}]
        )
        (call,) = called.choices[0].message.tool_calls
        assert call.function.name == "weather", called
    message = refused(openai.NotFoundError, lambda: completions.create(model="none", messages=SAID))
    assert "GatewayEndpoint not found (name='none')" in message, message


chats("mlflow/v1")
chats("openai/v1")
assert [model.id for model in client("mlflow/v1").models.list()] == [
    "broken",
    "chat",
    "claude",
    "falling",
    "poor",
]
vectors = client("openai/v1").embeddings.create(
    model="chat", input=["a", "bcd"], encoding_format="float"
)
assert [vector.embedding for vector in vectors.data] == [[0.5, 1.0], [0.5, 3.0]], vectors
response = client("openai/v1").responses.create(model="chat", input="hi")
assert response.output_text == "echo: hi", response

unified = client("mlflow/v1").chat.completions
assert unified.create(model="falling", messages=SAID).choices[0].message.content.startswith("echo:")
overloaded = refused(
    openai.InternalServerError, lambda: unified.create(model="broken", messages=SAID)
)
assert "the model is overloaded" in overloaded, overloaded
unified.create(model="poor", messages=SAID)
spent = refused(openai.RateLimitError, lambda: unified.create(model="poor", messages=SAID))
assert "Budget limit exceeded" in spent, spent

claude = anthropic.Anthropic(
    base_url=f"{URL}/gateway/anthropic", api_key="own", default_headers=HEADERS, max_retries=0
)
asked_for: dict[str, Any] = {"model": "claude", "max_tokens": 20, "messages": SAID}
message = claude.messages.create(**asked_for)
assert message.content[0].text == "echo: hello there", message
with claude.messages.stream(**asked_for) as stream:
    assert "".join(stream.text_stream) == "echo: hellothere"
used = claude.messages.create(
    **asked_for, tools=[{"name": "weather", "description": "", "input_schema": PARAMETERS}]
)
assert used.content[0].input == {"city": "hello there"}, used

stranger = openai.OpenAI(base_url=f"{URL}/gateway/mlflow/v1", api_key="own", max_retries=0)
refused(openai.AuthenticationError, stranger.models.list)

sys.stdout.write(f"ok {anthropic.__version__}\n")
