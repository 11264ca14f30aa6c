"""Finds the workspace of a resource. Grants are stored by workspace."""

from __future__ import annotations

from mlcore.auth.permissions import ANY, EXPERIMENT
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import workspaces_enabled
from mlcore.repos.experiments import experiments


def workspace_of(resource_type: str, resource_id: str, active: str) -> str | None:
    """Returns the workspace whose grants decide about a resource; None for an experiment that does
    not exist.

    An experiment is looked up by its id. Other resources are named within the request's workspace,
    ``active``.
    """
    if not workspaces_enabled():
        return DEFAULT_WORKSPACE
    if resource_id == ANY or resource_type != EXPERIMENT:
        return active
    return experiments.workspace_of(resource_id)
