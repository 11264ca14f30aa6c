"""MLflow's one route for chats and embeddings, which tells them by their fields."""

from __future__ import annotations

from gateway_calls import answers
from gateway_calls.bodies import body_of, named_endpoint
from gateway_calls.calls import call_of
from gateway_calls.chats import completed
from mlcore.errors import GatewayCallFailed
from mlcore.gateway import embeddings
from mlcore.http import Request
from mlcore.http.response import Response


def invocations(request: Request) -> Response:
    """``POST /gateway/{endpoint_name}/mlflow/invocations``."""
    body = body_of(request)
    endpoint_name = named_endpoint(request, body)
    if "messages" in body:
        return completed(request, endpoint_name, body)
    call = call_of(request, endpoint_name)
    if "input" not in body:
        raise GatewayCallFailed(
            400, "Invalid request: payload format must be either chat or embeddings"
        )
    return answers.whole(embeddings.embedded(call, body))
