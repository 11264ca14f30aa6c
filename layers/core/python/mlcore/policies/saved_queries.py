"""Permission checks for saved SQL queries. Whoever may query the rows of a workspace in the system
tables may read and run the workspace's saved queries. The owner of a saved query, and
administrators of the workspace, may change it.
"""

from __future__ import annotations

from typing import Any

from mlcore.entities.saved_queries import SavedQuery
from mlcore.policies.access import Access
from mlcore.policies.system_tables import reads_workspace


def read(access: Access, message: Any) -> bool:
    """The policy for reading saved SQL queries: whether the caller may query the rows of the
    request's workspace in the system tables. The right to query other workspaces does not suffice.
    """
    return reads_workspace(access)


def write(access: Access, message: Any) -> bool:
    """The policy for writing saved queries: whether the caller may query the system tables' rows of
    the request's workspace, and uses no API key with scopes, because the scope ``sql`` only allows
    queries. The route's function then checks with :func:`may_change` whether the caller may change
    the stored query."""
    return access.scopes is None and reads_workspace(access)


def may_change(access: Access | None, query: SavedQuery) -> bool:
    """Whether the caller may change or delete a saved SQL query that the caller may read.
    ``access`` is None on a server without logins, where everybody may."""
    if access is None or access.is_admin:
        return True
    is_owner = query.owner_id is not None and query.owner_id == access.profile().user.user_id
    return is_owner or access.administrates(access.workspace)
