"""MLflow's one route for chats and embeddings, which tells them by their fields."""

from __future__ import annotations

from gateway_calls import answers
from gateway_calls.bodies import Asked
from gateway_calls.calls import call_of
from gateway_calls.chats import completed
from mlcore.errors import GatewayCallFailed
from mlcore.gateway import embeddings
from mlcore.http import Request
from mlcore.http.response import Response


def invocations(asked: Asked, request: Request) -> Response:
    """``POST /gateway/{endpoint_name}/mlflow/invocations``."""
    if "messages" in asked.body:
        return completed(asked, request)
    call = call_of(request, asked.endpoint_name)
    if "input" not in asked.body:
        raise GatewayCallFailed(
            400, "Invalid request: payload format must be either chat or embeddings"
        )
    return answers.whole(embeddings.embedded(call, asked.body))
