"""Who may call an endpoint of the gateway: whoever was granted its use."""

from __future__ import annotations

import json
from typing import Any

from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.auth.requirements import Requirement
from mlcore.errors import BadRequest
from mlcore.policies.access import Access
from mlcore.repos.gateway import configuration


def use_endpoint(access: Access, request: Any) -> bool:
    """The endpoint that the path names, or the body's ``model``. One that is not there counts as
    one that nobody was granted.

    Raises:
        BadRequest: none is named.
    """
    name = request.parameters.get("endpoint_name") or _model(request)
    if not name:
        raise BadRequest("No endpoint name found")
    access.gateway = configuration.read(access.workspace)
    found = access.gateway.endpoint_named(name)
    return found is not None and access.allows(
        Requirement(GATEWAY_ENDPOINT, found.endpoint_id, "use")
    )


def _model(request: Any) -> str | None:
    try:
        body = json.loads(request.body())
    except ValueError as error:
        raise BadRequest(f"Invalid JSON payload: {error}") from None
    model = body.get("model") if isinstance(body, dict) else None
    return model if isinstance(model, str) else None
