"""Converts workspaces to MLflow's JSON."""

from __future__ import annotations

from typing import Any

from mlcore.entities.workspaces import Workspace


def workspace(entity: Workspace) -> dict[str, Any]:
    """Returns the JSON of MLflow's message ``mlflow.Workspace``."""
    fields: dict[str, Any] = {"name": entity.name}
    if entity.description is not None:
        fields["description"] = entity.description
    if entity.artifact_root:
        fields["default_artifact_root"] = entity.artifact_root
    archival = {
        "location": entity.trace_archival_location,
        "retention": entity.trace_archival_retention,
    }
    archival_config = {name: text for name, text in archival.items() if text}
    if archival_config:
        fields["trace_archival_config"] = archival_config
    return fields
