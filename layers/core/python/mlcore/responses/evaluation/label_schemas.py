"""Label schemas in the shape of MLflow's JSON."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.label_schemas import (
    LabelSchema,
)


def label_schema(schema: LabelSchema) -> dict[str, Any]:
    """Returns the JSON of MLflow's message ``mlflow.label_schemas.LabelSchema``."""
    (kind,) = schema.input
    fields = {name: value for name, value in schema.input[kind].items() if value != []}
    answer = {
        "schema_id": schema.schema_id,
        "experiment_id": schema.experiment_id,
        "name": schema.name,
        "type": schema.schema_type,
        "instruction": schema.instruction,
        "enable_comment": schema.enable_comment,
        "input": {kind: fields},
        "created_at": schema.created_time,
        "last_updated_at": schema.last_update_time,
        "is_default": schema.is_default,
    }
    return {name: value for name, value in answer.items() if value is not None}
