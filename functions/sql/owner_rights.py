"""Decides which rows the SQL query of an alert reads: those of the alert's workspace that the
alert's owner may read when the alert is evaluated.

An alert is allowed when it is created. Its owner may be deleted or lose rights afterwards.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from mlcore.entities.alerts import Alert
from mlcore.environment import workspaces_enabled
from mlcore.http.gate import is_on
from mlcore.policies.alerts import may_notify_operators
from mlcore.policies.background_callers import absent_caller
from mlcore.policies.system_tables import audited_workspaces, readable_workspaces, reads_workspace
from mlcore.repos.users import api_keys


class ReadableRows(NamedTuple):
    """The workspaces whose rows of the system tables the SQL query of an alert may read; None
    stands for all workspaces."""

    workspaces: list[str] | None
    audited: list[str] | None
    """The workspaces whose rows of ``audit_log`` the query may read; None stands for all
    workspaces."""
    notifies_operators: bool = True
    """Whether the alert may notify the topics of the deployment."""


def rows_of_owner(alert: Alert) -> ReadableRows | None:
    """Returns which rows of the alert's workspace the alert's owner may read now. None if the owner
    does not exist any more, the owner's API key was revoked, or the owner may not query the rows.
    Up to four consistent reads; none where no login is required."""
    every_row = None if not workspaces_enabled() else [alert.workspace]
    if not is_on(os.environ):
        return ReadableRows(every_row, every_row)
    if alert.created_by is None or alert.owner_id is None:
        return None
    owner = absent_caller(alert.created_by, alert.owner_id, alert.workspace)
    if owner is None or (alert.key_id is not None and api_keys.find(alert.key_id) is None):
        return None
    if not reads_workspace(owner):
        return None
    # Rows without a workspace can be read only if workspaces are off (``every_row`` is None).
    reads_all = readable_workspaces(owner) is None
    audited = audited_workspaces(owner)
    return ReadableRows(
        every_row if reads_all else [alert.workspace],
        every_row if audited is None else audited,
        may_notify_operators(owner),
    )
