"""Chats in OpenAI's form, with a model of any provider."""

from __future__ import annotations

from gateway_calls import answers
from gateway_calls.bodies import Asked
from gateway_calls.calls import call_of
from mlcore.gateway import chats
from mlcore.http import Request
from mlcore.http.response import Response


def completions(asked: Asked, request: Request) -> Response:
    """``POST /gateway/mlflow/v1/chat/completions``: ``model`` names the endpoint."""
    return completed(asked, request)


def completed(asked: Asked, request: Request) -> Response:
    """A chat's completion, or the stream of its chunks, as the body wants it."""
    call = call_of(request, asked.endpoint_name)
    chat = chats.checked(asked.body)
    if chat.get("stream"):
        return answers.streamed(chats.chunks(call, chat))
    return answers.whole(chats.completion(call, chat))
