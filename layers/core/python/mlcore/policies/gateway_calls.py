"""Who may call an endpoint of the gateway: whoever was granted its use."""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.auth.requirements import Requirement
from mlcore.policies.access import Access
from mlcore.repos.gateway import configuration


def use_endpoint(access: Access, message: Any) -> bool:
    """The endpoint that the call names. One that is not there counts as one that nobody was
    granted."""
    access.gateway = configuration.read(access.workspace)
    found = access.gateway.endpoint_named(message.endpoint_name)
    return found is not None and access.allows(
        Requirement(GATEWAY_ENDPOINT, found.endpoint_id, "use")
    )
