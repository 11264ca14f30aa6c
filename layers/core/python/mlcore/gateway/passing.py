"""Requests in a provider's own form: another's are refused in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mlcore.gateway import streams
from mlcore.gateway.invocation import Invocation
from mlcore.providers import provider as p
from mlcore.providers import transport
from mlcore.providers.provider import Provider

Json = dict[str, Any]

_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    p.OPENAI_CHAT: ("passthrough/model/openai-chat", ""),
    p.OPENAI_EMBEDDINGS: ("passthrough/model/openai-embeddings", ""),
    p.OPENAI_RESPONSES: ("passthrough/model/openai-responses", ""),
    p.OPENAI_RESPONSES_COMPACT: ("passthrough/model/openai-responses", ""),
    p.ANTHROPIC_MESSAGES: ("passthrough/model/anthropic-messages", "anthropic"),
    p.GEMINI_GENERATE_CONTENT: ("passthrough/model/gemini-generateContent", "gemini"),
    p.GEMINI_STREAM_GENERATE_CONTENT: ("passthrough/model/gemini-generateContent", "gemini"),
}
"""MLflow's names of the requests, and of the form of their messages."""


def answer(call: Invocation, action: str, body: Json, headers: Mapping[str, str]) -> Json:
    """The provider's answer as it is, or as guardrails let it pass; vectors they do not look at.

    Raises:
        GatewayCallFailed
    """
    with call.going(body, *_KINDS[action]) as span:
        asked = call.looked_at(body)
        answered = call.whole(
            lambda provider: provider.pass_on(action, dict(asked), headers),
            lambda provider, answer: provider.usage(answer),
        )
        if call.guards is not None and action != p.OPENAI_EMBEDDINGS:
            answered = call.guards.after(asked, answered)
        span.answered(answered)
        return answered


def stream(
    call: Invocation, action: str, body: Json, headers: Mapping[str, str]
) -> Iterator[bytes]:
    """The lines of the provider's events as they are."""
    with call.going(body, *_KINDS[action]) as span:
        asked = call.looked_at(body)
        lines: list[bytes] = []
        try:
            for line in call.parts(
                lambda provider: provider.pass_on_stream(action, dict(asked), headers), _usage_in
            ):
                lines.append(line)
                yield line
        finally:
            span.answered(streams.passed_on(action, lines))


def _usage_in(provider: Provider, line: bytes) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in transport.events(iter([line])):
        found |= provider.usage(event)
    return found
