"""Permission checks for calls of the gateway's endpoints. A call needs USE on the endpoint. To
read, change or delete data that the provider stores needs the right to update the endpoint."""

from __future__ import annotations

import re
from typing import Any, Final

from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.auth.requirements import Requirement
from mlcore.policies.access import Access
from mlcore.repos.gateway import configuration

_LIST_OF_MODELS: Final = re.compile(r"v[0-9][0-9a-z]*/models")
"""Paths of providers that return only a list of models, and no data that an account's users have
stored."""


def use_endpoint(access: Access, message: Any) -> bool:
    """Requires USE on the gateway endpoint that the call names. A missing endpoint is treated as
    one without a grant."""
    return _may(access, message.endpoint_name, "use")


def read_stored(access: Access, message: Any) -> bool:
    """Requires the right to update the endpoint that a GET of the proxy names: with the endpoint's
    key the provider shows the files, batches and answers of everybody who uses the key. A list of
    models requires USE."""
    path = message.request.path.partition("?")[0]
    is_list = _LIST_OF_MODELS.fullmatch(path) is not None
    return _may(access, message.endpoint_name, "use" if is_list else "update")


def change_stored(access: Access, message: Any) -> bool:
    """Requires the right to update the AI gateway's endpoint through which a DELETE or PATCH goes
    to the model provider. It may delete or change what any user of the endpoint's API key has
    stored there."""
    return _may(access, message.endpoint_name, "update")


def _may(access: Access, endpoint_name: str, action: str) -> bool:
    access.gateway = configuration.read(access.workspace)
    endpoint = access.gateway.endpoint_named(endpoint_name)
    return endpoint is not None and access.allows(
        Requirement(GATEWAY_ENDPOINT, endpoint.endpoint_id, action)
    )
