"""Converts issues (problems found in traces) to the JSON of MLflow's API."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.issues import Issue


def issue(entity: Issue, trace_count: int | None = None, *, basic: bool = False) -> dict[str, Any]:
    """Returns the JSON of MLflow's message ``mlflow.issues.Issue``. If it is ``basic``, its
    description is empty, and it has no root causes and no metadata."""
    if basic:
        entity = entity._replace(description="", root_causes=(), metadata={})
    fields = {
        "issue_id": entity.issue_id,
        "experiment_id": entity.experiment_id,
        "name": entity.name,
        "description": entity.description,
        "status": entity.status,
        "severity": entity.severity,
        "root_causes": list(entity.root_causes) or None,
        "source_run_id": entity.source_run_id,
        "created_timestamp": entity.created_time,
        "last_updated_timestamp": entity.last_update_time,
        "created_by": entity.created_by,
        "categories": list(entity.categories) or None,
        "trace_count": trace_count,
        "last_seen_timestamp": entity.last_seen_time,
        # Until somebody updates the issue, its creator stands for the last editor.
        "last_updated_by": entity.updated_by or entity.created_by,
        "metadata": dict(entity.metadata) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}
