"""Chats in OpenAI's form, with a model of any provider."""

from __future__ import annotations

from typing import Any

from gateway_calls import answers
from gateway_calls.bodies import body_of, named_endpoint
from gateway_calls.calls import call_of
from mlcore.gateway import chats
from mlcore.http import Request
from mlcore.http.response import Response

Json = dict[str, Any]


def completions(request: Request) -> Response:
    """``POST /gateway/mlflow/v1/chat/completions``: ``model`` names the endpoint."""
    body = body_of(request)
    return completed(request, named_endpoint(request, body), body)


def completed(request: Request, endpoint_name: str, body: Json) -> Response:
    """A chat's completion, or the stream of its chunks, as the body wants it."""
    call = call_of(request, endpoint_name)
    asked = chats.checked(body)
    if asked.get("stream"):
        return answers.streamed(chats.chunks(call, asked))
    return answers.whole(chats.completion(call, asked))
