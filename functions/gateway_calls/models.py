"""The endpoints of a workspace as OpenAI's clients list models."""

from __future__ import annotations

from gateway_calls import answers
from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.http import Request
from mlcore.http.response import Response
from mlcore.repos.gateway import configuration


def list_models(_message: None, request: Request) -> Response:
    """By name; those that the caller may read."""
    readable = request.may_read(GATEWAY_ENDPOINT)
    found = sorted(
        (one.name, one.created_at // 1000)
        for one in configuration.read(request.workspace).endpoints.values()
        if one.name and readable(one.endpoint_id)
    )
    return answers.whole(
        {
            "object": "list",
            "data": [
                {"id": name, "object": "model", "created": created, "owned_by": "mlflow"}
                for name, created in found
            ],
        }
    )
