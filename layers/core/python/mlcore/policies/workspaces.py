"""Workspaces are made and changed by administrators, and seen by those who have anything there; the
deployment's settings are for administrators."""

from __future__ import annotations

from typing import Any

from mlcore.policies.access import Access
from mlcore.policies.requests import Policy, Route, administrators, anybody

_WORKSPACES = "/3.0/mlflow/workspaces"
_CONFIG = "/3.0/mlflow-serverless/config"


def view(access: Access, message: Any) -> bool:
    return access.sees_workspace(str(message.workspace_name))


POLICIES: dict[Route, Policy] = {
    ("GET", _WORKSPACES): anybody,
    ("POST", _WORKSPACES): administrators,
    ("GET", f"{_WORKSPACES}/{{workspace_name}}"): view,
    ("PATCH", f"{_WORKSPACES}/{{workspace_name}}"): administrators,
    ("DELETE", f"{_WORKSPACES}/{{workspace_name}}"): administrators,
    ("GET", _CONFIG): administrators,
    ("GET", f"{_CONFIG}/{{key}}"): administrators,
    ("PUT", f"{_CONFIG}/{{key}}"): administrators,
    ("DELETE", f"{_CONFIG}/{{key}}"): administrators,
}
