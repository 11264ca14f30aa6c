"""Permission checks for requests of SCIM, by which a directory provisions users and groups."""

from __future__ import annotations

from typing import Any

from mlcore.policies.access import Access


def provision(access: Access, message: Any) -> bool:
    """Allows SCIM requests by API keys with the scope ``scim`` whose owner is an administrator.
    Administrators without a key's scopes are let through before a policy is called."""
    return access.provisions()
