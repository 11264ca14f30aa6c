"""Chat completions in OpenAI's form, with a model of any provider."""

from __future__ import annotations

from gateway_calls import replies
from gateway_calls.call_start import start_call
from gateway_calls.request_parsing import GatewayCall
from mlcore.gateway import chats
from mlcore.gateway.chat_schemas import validated_chat
from mlcore.http import Request
from mlcore.http.response import Response


def completions(call: GatewayCall, request: Request) -> Response:
    """Answers ``POST /gateway/mlflow/v1/chat/completions``. The body's ``model`` names the gateway
    endpoint."""
    return complete(call, request)


def complete(call: GatewayCall, request: Request) -> Response:
    """Returns the chat completion of a gateway endpoint's model as JSON, or as a stream of chunks
    if ``stream`` is true in the body."""
    invocation = start_call(request, call.endpoint_name)
    chat = validated_chat(call.body)
    if chat.get("stream"):
        chunks = chats.stream_completion(invocation, chat)
        return replies.event_stream(chunks, invocation.limit_headers)
    return replies.json_response(chats.complete(invocation, chat), invocation.limit_headers)
