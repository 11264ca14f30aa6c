"""Issues in the shape of MLflow's JSON."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.issues import Issue


def issue(entity: Issue, trace_count: int | None = None) -> dict[str, Any]:
    """``mlflow.issues.Issue``."""
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
    }
    return {name: value for name, value in fields.items() if value is not None}
