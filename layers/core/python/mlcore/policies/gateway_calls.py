"""Permission checks for calls of the gateway's endpoints: the caller needs USE on the endpoint."""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.auth.requirements import Requirement
from mlcore.policies.access import Access
from mlcore.repos.gateway import configuration


def use_endpoint(access: Access, message: Any) -> bool:
    """Requires USE on the endpoint that the call names. A missing endpoint is treated as one
    without a grant."""
    access.gateway = configuration.read(access.workspace)
    endpoint = access.gateway.endpoint_named(message.endpoint_name)
    return endpoint is not None and access.allows(
        Requirement(GATEWAY_ENDPOINT, endpoint.endpoint_id, "use")
    )
