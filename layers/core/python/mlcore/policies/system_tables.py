"""The system tables are for administrators, for those whom the setting ``system_tables_readers``
names, and for administrators of a workspace as far as its rows go."""

from __future__ import annotations

from typing import Any

from mlcore.policies.access import Access
from mlcore.repos.settings import system_tables


def query(access: Access, message: Any) -> bool:
    """Whether there are any rows that the caller may read."""
    return visible(access) != []


def visible(access: Access) -> list[str] | None:
    """The workspaces whose rows the caller may read; None for all."""
    if access.is_admin:
        return None
    found = set(system_tables.granted(access.username))
    if system_tables.ALL in found:
        return None
    if access.administrates(access.workspace):
        found.add(access.workspace)
    return sorted(found)
