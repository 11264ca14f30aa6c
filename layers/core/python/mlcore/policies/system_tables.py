"""Permission checks for SQL queries of the system tables, and for the page of activity (the audit
log). Administrators and users that the setting ``system_tables_readers`` names may query;
administrators of a workspace may query its rows.
"""

from __future__ import annotations

from typing import Any

from mlcore.auth.permissions import EXPERIMENT
from mlcore.auth.requirements import Requirement
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import are_in_workspace
from mlcore.repos.settings import system_tables_readers


def query(access: Access, message: Any) -> bool:
    """Whether the caller may read rows of the system tables for at least one workspace. A saved
    query of the request's workspace requires the right to read that workspace's rows."""
    if message.has("saved"):
        return reads_workspace(access)
    return readable_workspaces(access) != []


def activity(access: Access, message: Any) -> bool:
    """The policy of the page of activity (the audit log): allows administrators, administrators of
    the workspace, and users who may manage the experiment that the message names. A missing
    experiment is refused like one without a grant."""
    if audited_workspaces(access) != []:
        return True
    experiment_id: str = message.experiment_id
    return (
        bool(experiment_id)
        and access.allows(Requirement(EXPERIMENT, experiment_id, "manage"))
        and are_in_workspace(access, [experiment_id])
    )


def reads_workspace(access: Access) -> bool:
    """Whether the caller may read the system tables' rows of the request's workspace."""
    workspaces = readable_workspaces(access)
    return workspaces is None or access.workspace in workspaces


def audited_workspaces(access: Access) -> list[str] | None:
    """Returns the workspaces whose rows of ``audit_log`` the caller may read: the request's
    workspace if the caller administrates it, otherwise none; for an administrator of the server
    None, which means all. A grant to query the tables is not enough, because the rows say what
    other people do and from where."""
    owner = access.of_sql()
    if owner is None:
        return []
    if owner.is_admin:
        return None
    return [owner.workspace] if owner.administrates(owner.workspace) else []


def readable_workspaces(access: Access) -> list[str] | None:
    """Returns the workspaces whose rows of the system tables the caller may read; None for all."""
    owner = access.of_sql()
    if owner is None:
        return []
    access = owner
    if access.is_admin:
        return None
    workspaces = set(system_tables_readers.granted(access.username))
    if system_tables_readers.ALL in workspaces:
        return None
    if access.administrates(access.workspace):
        workspaces.add(access.workspace)
    return sorted(workspaces)
