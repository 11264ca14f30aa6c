"""Lists a workspace's gateway endpoints in the form in which OpenAI's API lists models."""

from __future__ import annotations

from gateway_calls import replies
from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.auth.requirements import Requirement
from mlcore.http import Request
from mlcore.http.response import Response
from mlcore.repos.gateway import configuration


def list_models(_message: None, request: Request) -> Response:
    """Returns the gateway endpoints that the caller may use, ordered by name, as OpenAI's list of
    models: a client may choose any of them."""
    access = request.access
    endpoints = sorted(
        (endpoint.name, endpoint.created_at // 1000)
        for endpoint in configuration.read(request.workspace).endpoints.values()
        if endpoint.name
        and (
            access is None
            or access.allows(Requirement(GATEWAY_ENDPOINT, endpoint.endpoint_id, "use"))
        )
    )
    return replies.json_response(
        {
            "object": "list",
            "data": [
                {"id": name, "object": "model", "created": created, "owned_by": "mlflow"}
                for name, created in endpoints
            ],
        }
    )
