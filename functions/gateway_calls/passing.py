"""Requests in a provider's own form, passed on to it with the credentials of an endpoint."""

from __future__ import annotations

from gateway_calls import answers
from gateway_calls.bodies import Asked
from gateway_calls.calls import call_of
from mlcore.gateway import passing
from mlcore.http import Request
from mlcore.http.response import Response
from mlcore.providers.provider import GEMINI_STREAM_GENERATE_CONTENT, OPENAI_EMBEDDINGS


def pass_on(action: str, asked: Asked, request: Request) -> Response:
    """The endpoint is what ``model`` names, of Gemini the path."""
    body = asked.body
    call = call_of(request, asked.endpoint_name)
    streams = action == GEMINI_STREAM_GENERATE_CONTENT or (
        bool(body.get("stream")) and action != OPENAI_EMBEDDINGS
    )
    if streams:
        return answers.passed(passing.stream(call, action, body, request.headers))
    return answers.whole(passing.answer(call, action, body, request.headers))
