"""Evaluation datasets and their records in the shape of MLflow's JSON."""

from __future__ import annotations

import json
from typing import Any

from mlcore.entities.evaluation.datasets import EvaluationDataset, EvaluationRecord


def dataset(entity: EvaluationDataset) -> dict[str, Any]:
    """Returns the JSON of ``mlflow.datasets.Dataset``, without the dataset's experiments: clients
    read them by another request."""
    fields = {
        "dataset_id": entity.dataset_id,
        "name": entity.name,
        "tags": json.dumps(entity.tags),
        "schema": entity.schema,
        "profile": entity.profile,
        "digest": entity.digest,
        "created_time": entity.created_time,
        "last_update_time": entity.last_update_time,
        "created_by": entity.created_by,
        "last_updated_by": entity.last_updated_by,
    }
    return {name: value for name, value in fields.items() if value is not None}


def record(entity: EvaluationRecord) -> dict[str, Any]:
    """Returns the JSON of a record of an evaluation dataset, as MLflow's clients read it."""
    return {
        "dataset_record_id": entity.record_id,
        "dataset_id": entity.dataset_id,
        "created_time": entity.created_time,
        **entity.content,
    }
