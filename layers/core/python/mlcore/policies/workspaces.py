"""Workspaces are made and changed by administrators, and seen by those who have anything there; the
deployment's settings are for administrators."""

from __future__ import annotations

from typing import Any

from mlcore.policies.access import Access


def view(access: Access, message: Any) -> bool:
    return access.sees_workspace(str(message.workspace_name))
