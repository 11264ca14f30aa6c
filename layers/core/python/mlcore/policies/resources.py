"""In which workspace a resource is, for grants are kept by workspace."""

from __future__ import annotations

from mlcore.auth.permissions import ANY, EXPERIMENT
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import workspaces_enabled
from mlcore.repos.experiments import experiments


def workspace_of(resource_type: str, resource_id: str, active: str) -> str | None:
    """The workspace whose grants decide about a resource; None when there is no such resource.

    Names belong to the request's workspace (``active``); an experiment's id says its own.
    """
    if not workspaces_enabled():
        return DEFAULT_WORKSPACE
    if resource_id == ANY or resource_type != EXPERIMENT:
        return active
    return experiments.workspace_of(resource_id)
