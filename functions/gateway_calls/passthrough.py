"""Forwards requests in the form of a model provider's own API to that provider, with the
credentials of a gateway endpoint or, if the caller is a coding agent that sends its own, with
those."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from gateway_calls import replies
from gateway_calls.call_start import start_call
from gateway_calls.request_parsing import GatewayCall, ProxyCall
from mlcore.auth.api_key_tokens import keys_in
from mlcore.environment import GATEWAY_LOGIN
from mlcore.gateway import passthrough as passing
from mlcore.gateway import proxied_calls
from mlcore.http import Request
from mlcore.http.response import Response
from mlcore.providers.provider import (
    ANTHROPIC_COUNT_TOKENS,
    ANTHROPIC_MESSAGES,
    GEMINI_STREAM_GENERATE_CONTENT,
    OPENAI_EMBEDDINGS,
)
from mlcore.providers.proxied import BinaryEvent, CountedAnswer, RawAnswer

_NEVER_STREAMED = (OPENAI_EMBEDDINGS, ANTHROPIC_COUNT_TOKENS)


def pass_on(action: str, call: GatewayCall, request: Request) -> Response:
    """Forwards a call in a provider's own form to the endpoint's provider, and returns the
    provider's response, as a stream where the caller asks for one. The body's ``model`` names the
    endpoint; for Gemini's routes the path does.

    Args:
        action: a key of :data:`mlcore.providers.provider.ROUTES`.
    """
    body = call.body
    invocation = start_call(request, call.endpoint_name)
    streams = action == GEMINI_STREAM_GENERATE_CONTENT or (
        bool(body.get("stream")) and action not in _NEVER_STREAMED
    )
    headers = _provider_headers(request)
    if streams:
        return replies.raw_event_stream(
            passing.stream(invocation, action, body, headers),
            _error_event(action),
            invocation.limit_headers,
        )
    answer = passing.answer(invocation, action, body, headers)
    return replies.json_response(answer, invocation.limit_headers)


def proxy(call: ProxyCall, request: Request) -> Response:
    """Answers ``/gateway/proxy/{endpoint_name}/{path+}``: sends the body to a path of the
    endpoint's provider and returns the provider's answer: as JSON, as a stream if the provider
    streams it, or unchanged if it has another type."""
    invocation = start_call(request, call.endpoint_name)
    parts = proxied_calls.call(invocation, call.request, _provider_headers(request))
    first = next(parts, b"")
    if isinstance(first, RawAnswer):
        next(parts, None)
        return replies.raw_response(first, invocation.limit_headers)
    if isinstance(first, CountedAnswer):
        next(parts, None)
        return replies.json_response(first.body, {**invocation.limit_headers, **first.headers})
    if isinstance(first, BinaryEvent):
        events = (part for part in chain((first,), parts) if isinstance(part, BinaryEvent))
        return replies.binary_event_stream(events, invocation.limit_headers)
    if isinstance(first, dict):
        next(parts, None)  # ends the call, which writes its cost and trace
        return replies.json_response(first, invocation.limit_headers)
    lines = (part for part in chain((first,), parts) if isinstance(part, bytes))
    return replies.raw_event_stream(
        lines, _error_event(passing.proxied_action(call.request.path)), invocation.limit_headers
    )


def _error_event(action: str | None) -> replies.ErrorEvent:
    if action == ANTHROPIC_MESSAGES:
        return replies.anthropic_error_event
    if action == GEMINI_STREAM_GENERATE_CONTENT:
        return replies.google_error_event
    return replies.openai_error_event


def _provider_headers(request: Request) -> Mapping[str, str]:
    """Returns the request's headers without ``Authorization``, if it is the caller's login to this
    server, and without those that hold an API key of this server. From the others,
    :func:`mlcore.providers.provider.forwarded_headers` chooses those that are forwarded."""
    headers = request.headers
    has_login = not headers.get(GATEWAY_LOGIN) and request.username() is not None
    return {
        name: value
        for name, value in headers.items()
        if not (has_login and name == "authorization") and not keys_in(value)
    }
