"""Permission checks for alerts over SQL queries and budgets. Whoever may query the rows of a
workspace in the system tables with SQL may have alerts there. An alert is seen and changed by its
owner and by administrators of the workspace.
"""

from __future__ import annotations

from typing import Any, Final

from mlcore.entities.alerts import Alert
from mlcore.policies.access import Access
from mlcore.policies.background_callers import absent_caller
from mlcore.policies.system_tables import reads_workspace

_OTHER_CHANGES: Final = (
    *("sql", "saved", "budget_policy_id", "parameters", "condition", "interval_minutes"),
    *("for_evaluations", "reminder_hours", "destinations"),
)


def read(access: Access, message: Any) -> bool:
    """The policy for reading alerts: whether the caller may query the system tables' rows of the
    request's workspace. :func:`may_see` decides which alerts the caller sees."""
    return reads_workspace(access)


def write(access: Access, message: Any) -> bool:
    """The policy for creating alerts: whether the caller may query the system tables' rows of the
    request's workspace, and uses no API key with scopes, because the scope ``sql`` only allows
    queries."""
    return access.scopes is None and reads_workspace(access)


def update(access: Access, message: Any) -> bool:
    """The policy for changing alerts: whether the caller may create alerts (:func:`write`), or the
    request only disables one, which an owner who may no longer query may still do. API keys with
    scopes are refused."""
    return write(access, message) or (access.scopes is None and disables(message))


def delete(access: Access, message: Any) -> bool:
    """The policy for deleting alerts: allows every caller but API keys with scopes. The right to
    run SQL queries is not needed; :func:`may_see` then decides about the single alert."""
    return access.scopes is None


def disables(message: Any) -> bool:
    """Whether the request to change an alert does nothing but disable it."""
    return (
        message.has("enabled")
        and not message.enabled
        and not any(message.has(field) for field in _OTHER_CHANGES)
    )


def keeps_rights(alert: Alert, notifies_operators: bool) -> bool:
    """Whether the owner of an alert still has the rights that its scheduled evaluations need. Reads
    the owner's user and, unless the owner is an administrator of the server, the setting
    ``system_tables_readers`` and the owner's grants and roles.

    Args:
        notifies_operators: whether the alert sends mail to the operators of the deployment.
    """
    if alert.created_by is None:
        return False
    owner = absent_caller(alert.created_by, alert.owner_id, alert.workspace)
    if owner is None or not reads_workspace(owner):
        return False
    return not notifies_operators or may_notify_operators(owner)


def may_see(access: Access | None, alert: Alert) -> bool:
    """Whether the caller may see, change and delete an alert (on an SQL result or a budget) of the
    request's workspace. ``access`` is None on a server without logins, where everybody may."""
    if access is None or access.is_admin:
        return True
    is_owner = alert.owner_id is not None and alert.owner_id == access.profile().user.user_id
    return is_owner or access.administrates(access.workspace)


def may_notify_operators(access: Access | None) -> bool:
    """Whether the caller's alerts may send mail to those who operate the deployment: for
    administrators of the server and of the workspace."""
    return access is None or access.is_admin or access.administrates(access.workspace)
