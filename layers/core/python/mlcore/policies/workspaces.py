"""Permission checks for workspaces: users with a role or grant in a workspace may see it. Creating
and changing workspaces, and the deployment's settings, are for administrators."""

from __future__ import annotations

from typing import Any

from mlcore.policies.access import Access


def view(access: Access, message: Any) -> bool:
    return access.sees_workspace(str(message.workspace_name))
