"""MLflow's JSON of experiments. Empty lists are left out."""

from __future__ import annotations

from typing import Any

from mlcore.entities.experiments import Experiment


def experiment(entity: Experiment, trace_retention: str | None = None) -> dict[str, Any]:
    """Returns the JSON of MLflow's message ``mlflow.Experiment``.

    Args:
        trace_retention: the age at which the experiment's traces are archived, such as ``30d``;
            None if they are not archived.
    """
    fields: dict[str, Any] = {
        "experiment_id": entity.experiment_id,
        "name": entity.name,
        "artifact_location": entity.artifact_location,
        "lifecycle_stage": entity.lifecycle_stage,
        "last_update_time": entity.last_update_time,
        "creation_time": entity.creation_time,
        "workspace": entity.workspace,
    }
    if trace_retention is not None:
        fields["effective_trace_archival_retention"] = trace_retention
    if entity.tags:
        fields["tags"] = [
            {"key": key, "value": value} for key, value in sorted(entity.tags.items())
        ]
    return fields
