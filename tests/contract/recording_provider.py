"""A provider of every kind that does not look at what it is told, and all texts that it has
received."""

from __future__ import annotations

import base64
import re
from typing import Final
from urllib.parse import unquote

from mlcore.redaction import leaves
from tests.doubles.bedrock import converse
from tests.doubles.providers import Asked, Provider, Told, anthropic, gemini, openai

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{8,}")


def anything(request: Asked) -> Told:
    """A provider of every kind, which does not look at what it is told."""
    path = request.path.partition("?")[0]
    said = [{"role": "user", "content": "hello"}]
    plain = {"model": "m", "messages": said, "stream": request.body.get("stream")}
    if path.endswith("/chat/completions"):
        return openai(request._replace(body=plain))
    if path.endswith("/converse"):
        return converse(request._replace(body={"messages": [{"content": [{"text": "hello"}]}]}))
    if path.endswith("/messages"):
        return anthropic(request._replace(body=plain))
    if path.endswith("/embeddings"):
        return openai(request._replace(body={"model": "m", "input": "x"}))
    if path.endswith(("/responses", "/responses/compact")):
        body = {"model": "m", "input": "x"}
        return openai(request._replace(path="/responses", body=body))
    if "enerateContent" in path:
        return gemini(request._replace(body={"contents": [{"parts": [{"text": "x"}]}]}))
    return Told(body={"object": "file", "input_tokens": 3})


def received(provider: Provider) -> str:
    """All texts that a provider has received, as they are and decoded."""
    texts: list[str] = []
    for request in provider.asked:
        texts += [request.path, unquote(unquote(request.path)), repr(request.headers)]
        whole = request.raw.decode("utf-8", "replace")
        found, names = leaves.collected([whole, *whole.splitlines(), request.headers])
        texts += [whole, *found, *names]
        for run in _BASE64.findall("\n".join((*found, *names))):
            content = base64.b64decode(f"{run[:-1] if len(run) % 4 == 1 else run}===", b"-_")
            texts.append(content.decode("utf-8", "replace"))
    return "\n".join((*texts, *map(leaves.unescaped, texts)))
