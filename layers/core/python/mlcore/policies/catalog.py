"""Who may take a model of the catalog over into the registry. Who is logged in
reads the catalog."""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import REGISTERED_MODEL
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.policies.access import Access
from mlcore.repos.registry import registered_models


def register(access: Access, asked: Any) -> bool:
    """A model that is not there is made, one that is there gets a version."""
    name = asked.name
    if registered_models.find(access.workspace, name) is None:
        return access.may_create() and access.allows(
            Requirement(REGISTERED_MODEL, name, NOT_DENIED)
        )
    return access.allows(Requirement(REGISTERED_MODEL, name, "update"))
