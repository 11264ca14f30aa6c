"""Permission checks for alerts. Whoever may query the rows of a workspace with SQL may have alerts
there. An alert is seen and changed by its owner and by administrators of the workspace.
"""

from __future__ import annotations

from typing import Any

from mlcore.entities.alerts import Alert
from mlcore.policies.access import Access
from mlcore.policies.system_tables import reads_workspace


def read(access: Access, message: Any) -> bool:
    """Whether the caller may query the rows of the request's workspace. Which alerts the caller
    sees is decided by :func:`may_see`."""
    return reads_workspace(access)


def write(access: Access, message: Any) -> bool:
    """As :func:`read`, but for no API key with scopes: the scope ``sql`` only asks."""
    return access.scopes is None and reads_workspace(access)


def may_see(access: Access | None, alert: Alert) -> bool:
    """Whether the caller sees, changes and deletes an alert of the request's workspace. None stands
    for a server without logins, where everybody does."""
    if access is None or access.is_admin:
        return True
    is_owner = alert.owner_id is not None and alert.owner_id == access.profile().user.user_id
    return is_owner or access.administrates(access.workspace)


def may_notify_operators(access: Access | None) -> bool:
    """Whether the caller's alerts may send mail to those who operate the deployment: for
    administrators of the server and of the workspace."""
    return access is None or access.is_admin or access.administrates(access.workspace)
