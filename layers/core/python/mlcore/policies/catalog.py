"""Permission checks for registering a model of the model catalog. Every user who is logged in may
read the catalog."""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import REGISTERED_MODEL
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.policies.access import Access
from mlcore.repos.registry import registered_models


def register(access: Access, message: Any) -> bool:
    """Requires, to register a model of the model catalog, the right to update the registered model
    of that name, or to create it if it is missing."""
    name = message.name
    if registered_models.find(access.workspace, name) is None:
        return access.may_create() and access.allows(
            Requirement(REGISTERED_MODEL, name, NOT_DENIED)
        )
    return access.allows(Requirement(REGISTERED_MODEL, name, "update"))
