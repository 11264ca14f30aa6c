"""MLflow's common route for chats and embeddings."""

from __future__ import annotations

from gateway_calls.chats import complete
from gateway_calls.embeddings import embed
from gateway_calls.request_parsing import GatewayCall
from mlcore.http import Request
from mlcore.http.response import Response


def invocations(call: GatewayCall, request: Request) -> Response:
    """Answers ``POST /gateway/{endpoint_name}/mlflow/invocations``: a chat if the body has
    ``messages``, embeddings if it has ``input``. Raises GatewayCallFailed (400) for any other
    body."""
    if "messages" in call.body:
        return complete(call, request)
    return embed(call, request)
