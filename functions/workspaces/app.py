"""The RPCs of workspaces: worlds of their own for experiments, models and webhooks."""

from __future__ import annotations

from mlcore.http import delete, get, lambda_handler, patch, post
from workspaces import messages as m
from workspaces import removal, service

_ONE = "/mlflow/workspaces/{workspace_name}"

RPCS = (
    get("/mlflow/workspaces", m.ListWorkspaces, service.list_workspaces, "3.0"),
    post("/mlflow/workspaces", m.CreateWorkspace, service.create_workspace, "3.0", status=201),
    get(_ONE, m.GetWorkspace, service.get_workspace, "3.0"),
    patch(_ONE, m.UpdateWorkspace, service.update_workspace, "3.0"),
    delete(_ONE, m.DeleteWorkspace, removal.delete_workspace, "3.0", status=204),
)

handler = lambda_handler(RPCS)
