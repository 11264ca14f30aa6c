"""Chat completions through a gateway endpoint, at once or as a stream, in the form of OpenAI's
API."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import answer_chunking, stream_assembly
from mlcore.gateway.caller import internal_caller
from mlcore.gateway.chat_schemas import CHAT, COMPLETION, validated_chat
from mlcore.gateway.invocation import Invocation, begin

if TYPE_CHECKING:
    from mlcore.gateway.request_redaction import RequestRedaction

Json = dict[str, Any]

_REQUEST_TYPE: Final = "unified/chat"
_OF_STREAMS: Final = ("stream", "stream_options")
"""Fields of a request that only a stream has."""


def complete_unguarded(
    workspace: str,
    endpoint_name: str,
    chat: Mapping[str, Any],
    username: str | None = None,
    *,
    judges: bool = False,
    redactions: tuple[RequestRedaction, ...] = (),
) -> Json:
    """Completes a chat through an endpoint without applying the endpoint's guardrails. Guardrails
    use it for their own judges, whose calls would otherwise be guarded again.

    Arguments, result and errors are those of :func:`mlcore.gateway.guarded_calls.complete_chat`,
    except:

    Args:
        redactions: those of the call that is guarded, which apply to its guardrails' calls as well.
    """
    request = validated_chat(chat)
    caller = internal_caller(username, judges=judges)
    call = begin(workspace, endpoint_name, caller)
    call.redactions = tuple(dict.fromkeys((*redactions, *call.redactions)))
    return complete(call, request)


def complete(call: Invocation, chat: Json) -> Json:
    """Completes a chat that :func:`~mlcore.gateway.chat_schemas.validated_chat` has returned, and
    returns the completion. The guardrails of the call, if it has any, check the request and the
    answer. Raises GatewayCallFailed if the providers or a guardrail refuse the chat."""
    chat = _redacted(call, chat)
    with call.recorded(chat, _REQUEST_TYPE) as span:
        sent = _guarded(call, chat)
        answer = call.ask(
            lambda provider: {**provider.chat(dict(sent)), "provider": provider.model.provider},
            lambda provider, answer: provider.chat_usage(answer),
        )
        if call.guardrails is not None:
            answer = call.guardrails.after(sent, answer, COMPLETION)
        span.set_outputs(answer)
        return answer


def stream_completion(call: Invocation, chat: Json) -> Iterator[Json]:
    """Completes a chat through the AI gateway and yields the chunks of the completion; the last
    chunks hold the token usage, unless the caller set ``include_usage`` to false. If a guardrail
    checks answers, the provider is asked for the complete answer, and the chunks come after the
    check."""
    chunks = _stream(call, chat)
    return _without_usage(chunks) if _forbids_usage(chat) else chunks


def _stream(call: Invocation, chat: Json) -> Generator[Json]:
    if call.needs_whole_answer:
        whole = {name: value for name, value in chat.items() if name not in _OF_STREAMS}
        yield from answer_chunking.completion_chunks(complete(call, whole))
        return
    chat = _redacted(call, chat)
    with call.recorded(chat, _REQUEST_TYPE) as span:
        sent = _guarded(call, chat)
        sent_chunks: list[Json] = []
        try:
            for chunk in call.stream(
                lambda provider: (
                    {**chunk, "provider": provider.model.provider}
                    for chunk in provider.chat_stream(dict(sent))
                ),
                lambda provider, chunk: provider.chat_usage(chunk),
            ):
                sent_chunks.append(chunk)
                yield chunk
        finally:
            span.set_outputs(stream_assembly.assemble_completion(sent_chunks))


def _redacted(call: Invocation, chat: Json) -> Json:
    """Applies the call's redactions to a chat and returns it. Raises GatewayCallFailed (400) if the
    result is no valid chat request."""
    redacted = call.redacted(chat)
    return chat if redacted is chat else _valid(call, redacted)


def _valid(call: Invocation, redacted: Json) -> Json:
    """Returns a redacted chat if it is still a valid chat request. Raises GatewayCallFailed (400)
    otherwise."""
    try:
        return validated_chat(redacted)
    except GatewayCallFailed as error:
        call.refuse()
        raise GatewayCallFailed(
            400, f"Rules of redaction replace what the request needs. {error.message}"
        ) from None


def _forbids_usage(chat: Json) -> bool:
    options = chat.get("stream_options") or {}
    return not options.get("include_usage", True)


def _without_usage(chunks: Generator[Json]) -> Iterator[Json]:
    """Yields the chunks of a chat without those that hold the usage alone."""
    with closing(chunks):
        for chunk in chunks:
            if chunk["choices"] or not chunk.get("usage"):
                yield chunk


def _guarded(call: Invocation, chat: Json) -> Json:
    """Returns the chat, unchanged or rewritten by the call's guardrails. Guardrails cannot change
    whether the answer is streamed."""
    sent = call.guarded_request(chat, CHAT)
    if sent is chat:
        return chat
    sent = _valid(call, sent)
    return {
        **{name: value for name, value in sent.items() if name != "stream"},
        **({"stream": chat["stream"]} if "stream" in chat else {}),
    }
