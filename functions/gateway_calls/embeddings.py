"""The route for embeddings through a gateway endpoint."""

from __future__ import annotations

from gateway_calls import replies
from gateway_calls.call_start import start_call
from gateway_calls.request_parsing import GatewayCall
from mlcore.errors import GatewayCallFailed
from mlcore.gateway import embeddings
from mlcore.http import Request
from mlcore.http.response import Response


def embed(call: GatewayCall, request: Request) -> Response:
    """Answers ``POST /gateway/mlflow/v1/embeddings``. The body's ``model`` names the gateway
    endpoint. Raises GatewayCallFailed (400) if the body has no ``input``."""
    invocation = start_call(request, call.endpoint_name)
    if "input" not in call.body:
        raise GatewayCallFailed(
            400, "Invalid request: payload format must be either chat or embeddings"
        )
    answer = embeddings.embed(invocation, call.body)
    return replies.json_response(answer, invocation.limit_headers)
