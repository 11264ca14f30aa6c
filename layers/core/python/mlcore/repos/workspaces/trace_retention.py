"""Determines after which time the traces of an experiment are archived, from the server's
configuration, the setting of the workspace and the experiment's tag."""

from __future__ import annotations

from typing import Final

from mlcore import archival_configuration
from mlcore.entities.experiments import Experiment
from mlcore.environment import settings
from mlcore.models.workspaces import Workspace as WorkspaceItem
from mlcore.process_cache import ProcessCache
from mlcore.repos.workspaces import workspaces

REMEMBERED_SECONDS: Final = 60.0
"""How long a process may use a workspace's retention that another process has changed."""

_retentions: ProcessCache[tuple[str, str], str] = ProcessCache(
    "trace retention", seconds=REMEMBERED_SECONDS
)
"""By table and workspace; "" for a workspace that names none."""


def effective(experiment: Experiment) -> str | None:
    """Returns the age at which an experiment's traces are archived, such as ``30d``; None if the
    server archives no traces. One GetItem per workspace and minute, none without archival."""
    config = archival_configuration.server()
    if config is None:
        return None
    return archival_configuration.effective_retention(
        config, _of_workspace(experiment.workspace), experiment.experiment_id, experiment.tags
    )


def _of_workspace(name: str) -> str | None:
    cache_key = (settings().table_name, name)
    retention = _retentions.get(cache_key)
    if retention is None:
        item = workspaces.find(name)
        retention = (item and WorkspaceItem.of(item).trace_archival_retention) or ""
        _retentions.put(cache_key, retention)
    return retention or None
