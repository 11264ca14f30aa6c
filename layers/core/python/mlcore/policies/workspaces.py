"""Permission checks for workspaces: users may see a workspace if they have a role in it or a grant
on all of it that allows reading, or if its resources without a grant are readable. Creating and
changing workspaces, and the deployment's settings, are for administrators."""

from __future__ import annotations

from typing import Any

from mlcore.policies.access import Access


def view(access: Access, message: Any) -> bool:
    return access.sees_workspace(str(message.workspace_name))
