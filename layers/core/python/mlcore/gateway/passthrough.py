"""Passthrough: gateway requests in a model provider's own form, which the gateway sends to the
provider without a conversion. Only gateway endpoints of that provider accept them.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import answer_chunking, chat_schemas, stream_assembly
from mlcore.gateway.chat_schemas import Shape
from mlcore.gateway.invocation import Invocation
from mlcore.gateway.retries import Handling, Repeats
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
_SHAPES: Final[Mapping[str, Shape]] = {
    p.OPENAI_CHAT: chat_schemas.COMPLETION,
    p.OPENAI_RESPONSES: chat_schemas.OPENAI_RESPONSE,
    p.OPENAI_RESPONSES_COMPACT: chat_schemas.OPENAI_RESPONSE,
    p.ANTHROPIC_MESSAGES: chat_schemas.ANTHROPIC_MESSAGE,
    p.GEMINI_GENERATE_CONTENT: chat_schemas.GEMINI_ANSWER,
}
"""The form that an answer must still have after a guardrail has rewritten it."""
_STORING: Final = (p.OPENAI_RESPONSES, p.OPENAI_RESPONSES_COMPACT)
"""Actions whose requests the provider may store and continue by itself."""
_PROXIED_ACTIONS: Final = (
    ("chat/completions", p.OPENAI_CHAT),
    ("v1/responses", p.OPENAI_RESPONSES),
    ("v1/messages", p.ANTHROPIC_MESSAGES),
    (":streamGenerateContent", p.GEMINI_STREAM_GENERATE_CONTENT),
)
"""Pairs (end of a provider's path, action whose answers have the same form)."""
_NO_CHOICES: Final = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_UNGUARDED_ANSWERS: Final = (p.OPENAI_EMBEDDINGS, p.ANTHROPIC_COUNT_TOKENS)
"""Actions whose answers hold no text that a guardrail could check."""


def answer(call: Invocation, action: str, body: Json, headers: Mapping[str, str]) -> Json:
    """Sends a request in a model provider's own form through a gateway endpoint, and returns the
    provider's answer, unchanged or as the guardrails rewrote it.

    Raises:
        GatewayCallFailed: the endpoint's provider does not have this form, or the provider or a
            guardrail refuses the request.
    """
    body, headers = call.redacted(body), call.redacted_headers(headers)
    with call.recorded(body, *_REQUEST_TYPES[action]) as span:
        request = call.guarded_request(body)
        provider_answer = call.ask(
            lambda provider: provider.passthrough(action, dict(request), headers),
            lambda provider, answer: provider.usage(answer),
            _handling(action, headers),
        )
        if call.guardrails is not None and action not in _UNGUARDED_ANSWERS:
            provider_answer = call.guardrails.after(request, provider_answer, _SHAPES.get(action))
        span.set_outputs(provider_answer)
        return provider_answer


def stream(
    call: Invocation, action: str, body: Json, headers: Mapping[str, str]
) -> Iterator[bytes]:
    """Yields the lines of the provider's event stream unchanged. If a guardrail checks answers, the
    provider is asked for the whole answer, and its events come after the check. The token usage of
    a chat, which the gateway always asks for, is yielded only if the caller asked for it.

    Raises:
        GatewayCallFailed: the provider refuses the request, or its stream breaks off; or a
            guardrail checks answers and this form cannot be sent after a check (400).
    """
    lines = _stream(call, action, body, headers)
    if action == p.OPENAI_CHAT and not _asks_for_usage(body):
        return _without_usage(lines)
    return lines


def _stream(
    call: Invocation, action: str, body: Json, headers: Mapping[str, str]
) -> Generator[bytes]:
    if call.needs_whole_answer:
        if action not in answer_chunking.WHOLE_ACTIONS:
            raise unchecked_stream(call)
        whole = {k: v for k, v in body.items() if k not in ("stream", "stream_options")}
        checked = answer(call, answer_chunking.WHOLE_ACTIONS[action], whole, headers)
        yield from answer_chunking.lines(action, checked)
        return
    body, headers = call.redacted(body), call.redacted_headers(headers)
    with call.recorded(body, *_REQUEST_TYPES[action]) as span:
        request = call.guarded_request(body)
        lines: list[bytes] = []
        try:
            for line in call.stream(
                lambda provider: provider.passthrough_stream(action, dict(request), headers),
                usage_in,
                handling=_handling(action, headers),
            ):
                lines.append(line)
                yield line
            if action == p.ANTHROPIC_MESSAGES and not is_complete_message(lines):
                raise incomplete_message()
        finally:
            span.set_outputs(stream_assembly.assemble_passthrough(action, lines))


def proxied_action(path: str) -> str | None:
    """Returns the passthrough action whose answers have the same form as a model provider's answers
    at ``path``, by the end of the path; None if that is not known."""
    plain = path.partition("?")[0]
    return next((action for end, action in _PROXIED_ACTIONS if plain.endswith(end)), None)


def _asks_for_usage(body: Json) -> bool:
    """Whether the caller expects the event with the token usage at the end of a chat."""
    options = body.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _without_usage(lines: Generator[bytes]) -> Iterator[bytes]:
    """Yields the lines of a streamed chat without the event that holds only the token usage, and
    without the empty line that ends this event."""
    is_skipped = False
    with closing(lines):
        for line in lines:
            is_skipped = _is_usage_alone(line) or (is_skipped and not line.strip())
            if not is_skipped:
                yield line


def _is_usage_alone(line: bytes) -> bool:
    """Whether a line of a streamed chat is the event that holds the token usage and no choice."""
    if _NO_CHOICES.search(line) is None:
        return False
    return any(
        event.get("choices") == [] and isinstance(event.get("usage"), dict)
        for event in transport.events(iter([line]))
    )


def _handling(action: str, headers: Mapping[str, str]) -> Handling:
    """Returns how failures of the provider are handled. A call with the caller's own credentials
    does not use the circuit breaker, because it may fail where the endpoint's would not."""
    return Handling(
        Repeats.UNSENT if action in _STORING else Repeats.REFUSED,
        uses_circuit=not p.brings_credentials(headers),
    )


def unchecked_stream(call: Invocation) -> GatewayCallFailed:
    """Returns the error (400) for a call whose answer is to be streamed although a guardrail must
    check the answer."""
    return GatewayCallFailed(
        400,
        f"A guardrail of the endpoint '{call.route.endpoint.name}' checks answers, and an answer "
        "of this form cannot be checked while it is streamed. Send the request without streaming.",
    )


def incomplete_message() -> GatewayCallFailed:
    """Returns the error (502) for a stream of Anthropic's API that ended before its message did."""
    return GatewayCallFailed(502, "The provider's stream ended before its message did.")


def is_complete_message(lines: list[bytes]) -> bool:
    """Whether the lines of an Anthropic stream include its end, or an error that the provider
    sent."""
    ends = ("message_stop", "error")
    return any(event.get("type") in ends for event in transport.events(iter(lines)))


def usage_in(provider: Provider, part: Json | bytes) -> dict[str, int]:
    """Returns the token counts in a model provider's JSON answer, or in one line of its event
    stream, by MLflow's names for them; an empty dict if there are no counts in it."""
    if isinstance(part, dict):
        return provider.usage(part)
    line = part
    usage: dict[str, int] = {}
    for event in transport.events(iter([line])):
        usage |= provider.usage(event)
    return usage
