"""Logged models in the shape of MLflow's JSON: empty lists are left out, empty texts are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.entities.logged_models import LoggedModel, ModelMetric

Json = dict[str, Any]

MAX_POINTS = 15_000
"""Of a model with more points the latest are shown: a Lambda response ends at 6 MB."""


def logged_model(entity: LoggedModel) -> Json:
    """``mlflow.LoggedModel``."""
    info: Json = {
        "model_id": entity.model_id,
        "experiment_id": entity.experiment_id,
        "name": entity.name,
        "creation_timestamp_ms": entity.creation_time,
        "last_updated_timestamp_ms": entity.last_update_time,
        "artifact_uri": entity.artifact_location,
        "status": entity.status,
        "model_type": entity.model_type,
        "source_run_id": entity.source_run_id,
    }
    data: Json = {}
    if entity.tags:
        info["tags"] = _pairs(entity.tags)
    if entity.params:
        data["params"] = _pairs(entity.params)
    if entity.metrics:
        data["metrics"] = [_metric(point, entity.model_id) for point in shown(entity.metrics)]
    return {"info": info, "data": data}


def shown(points: tuple[ModelMetric, ...]) -> tuple[ModelMetric, ...]:
    """The points that an answer has."""
    if len(points) <= MAX_POINTS:
        return points
    return tuple(sorted(points, key=lambda point: (point.timestamp, point.step))[-MAX_POINTS:])


def _metric(point: ModelMetric, model_id: str) -> Json:
    made: Json = {
        "key": point.key,
        "value": point.value,
        "timestamp": point.timestamp,
        "step": point.step,
    }
    if point.dataset_name is not None:
        made["dataset_name"] = point.dataset_name
    if point.dataset_digest is not None:
        made["dataset_digest"] = point.dataset_digest
    made["model_id"] = model_id
    made["run_id"] = point.run_id
    return made


def _pairs(texts: Mapping[str, str]) -> list[Json]:
    return [{"key": key, "value": value} for key, value in sorted(texts.items())]
