"""Passthrough: requests in a provider's own form, which only endpoints of that provider accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import stream_assembly
from mlcore.gateway.invocation import Invocation
from mlcore.providers import provider as p
from mlcore.providers import transport
from mlcore.providers.provider import Provider

Json = dict[str, Any]

_REQUEST_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    p.OPENAI_CHAT: ("passthrough/model/openai-chat", ""),
    p.OPENAI_EMBEDDINGS: ("passthrough/model/openai-embeddings", ""),
    p.OPENAI_RESPONSES: ("passthrough/model/openai-responses", ""),
    p.OPENAI_RESPONSES_COMPACT: ("passthrough/model/openai-responses", ""),
    p.ANTHROPIC_MESSAGES: ("passthrough/model/anthropic-messages", "anthropic"),
    p.ANTHROPIC_COUNT_TOKENS: ("passthrough/model/anthropic-messages", "anthropic"),
    p.GEMINI_GENERATE_CONTENT: ("passthrough/model/gemini-generateContent", "gemini"),
    p.GEMINI_STREAM_GENERATE_CONTENT: ("passthrough/model/gemini-generateContent", "gemini"),
}
"""For each action, MLflow's names of the request type and of the message format."""
_PROXY: Final = "proxy/raw"
_UNGUARDED_ANSWERS: Final = (p.OPENAI_EMBEDDINGS, p.ANTHROPIC_COUNT_TOKENS)
"""Actions whose answers hold no text that a guardrail could check."""


def answer(call: Invocation, action: str, body: Json, headers: Mapping[str, str]) -> Json:
    """Returns the provider's answer as it is, or as the guardrails let it pass.

    Raises:
        GatewayCallFailed: the endpoint's provider does not have the form, or refuses the request.
    """
    with call.recorded(body, *_REQUEST_TYPES[action]) as span:
        request = call.guarded_request(body)
        provider_answer = call.ask(
            lambda provider: provider.passthrough(action, dict(request), headers),
            lambda provider, answer: provider.usage(answer),
        )
        if call.guardrails is not None and action not in _UNGUARDED_ANSWERS:
            provider_answer = call.guardrails.after(request, provider_answer)
        span.set_outputs(provider_answer)
        return provider_answer


def stream(
    call: Invocation, action: str, body: Json, headers: Mapping[str, str]
) -> Iterator[bytes]:
    """Yields the lines of the provider's event stream unchanged.

    Raises:
        GatewayCallFailed: the provider refuses the request, or its stream breaks off.
    """
    with call.recorded(body, *_REQUEST_TYPES[action]) as span:
        request = call.guarded_request(body)
        lines: list[bytes] = []
        try:
            for line in call.stream(
                lambda provider: provider.passthrough_stream(action, dict(request), headers),
                _usage_in,
            ):
                lines.append(line)
                yield line
            if action == p.ANTHROPIC_MESSAGES and not _is_complete_message(lines):
                raise GatewayCallFailed(502, "The provider's stream ended before its message did.")
        finally:
            span.set_outputs(stream_assembly.assemble_passthrough(action, lines))


def proxy(
    call: Invocation, path: str, body: Json, headers: Mapping[str, str]
) -> Iterator[Json | bytes]:
    """Yields what a provider answers at any of its paths: the JSON answer as the guardrails let it
    pass, or the lines of a stream. The body is sent as it is, with its own ``model``.

    Args:
        path: as in :meth:`mlcore.providers.provider.Provider.proxy`.

    Raises:
        GatewayCallFailed: the provider cannot be proxied (501), or it or a guardrail refuses.
    """
    with call.recorded(body, _PROXY) as span:
        request = call.guarded_request(body)
        for part in call.stream(
            lambda provider: provider.proxy(path, dict(request), headers), _usage_in
        ):
            if isinstance(part, dict):
                checked = part
                if call.guardrails is not None:
                    checked = call.guardrails.after(request, part)
                span.set_outputs(checked)
                yield checked
            else:
                yield part


def _is_complete_message(lines: list[bytes]) -> bool:
    """Whether the lines of an Anthropic stream hold its end, or the provider's own error."""
    ends = ("message_stop", "error")
    return any(event.get("type") in ends for event in transport.events(iter(lines)))


def _usage_in(provider: Provider, part: Json | bytes) -> dict[str, int]:
    if isinstance(part, dict):
        return provider.usage(part)
    line = part
    usage: dict[str, int] = {}
    for event in transport.events(iter([line])):
        usage |= provider.usage(event)
    return usage
