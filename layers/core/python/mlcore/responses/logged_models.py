"""MLflow's JSON of logged models. Empty lists are left out, empty texts are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.entities.logged_models import LoggedModel, ModelMetric

Json = dict[str, Any]

MAX_POINTS = 15_000
"""Maximum metric points in an answer; of more, the latest are returned. A Lambda response is
limited to 6 MB."""


def logged_model(entity: LoggedModel) -> Json:
    """Returns the JSON of MLflow's message ``mlflow.LoggedModel``."""
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
        data["metrics"] = [
            _metric(point, entity.model_id) for point in latest_points(entity.metrics)
        ]
    return {"info": info, "data": data}


def latest_points(points: tuple[ModelMetric, ...]) -> tuple[ModelMetric, ...]:
    """Returns those metric points of a logged model that an answer contains: the MAX_POINTS
    latest."""
    if len(points) <= MAX_POINTS:
        return points
    return tuple(sorted(points, key=lambda point: (point.timestamp, point.step))[-MAX_POINTS:])


def _metric(point: ModelMetric, model_id: str) -> Json:
    fields: Json = {
        "key": point.key,
        "value": point.value,
        "timestamp": point.timestamp,
        "step": point.step,
    }
    if point.dataset_name is not None:
        fields["dataset_name"] = point.dataset_name
    if point.dataset_digest is not None:
        fields["dataset_digest"] = point.dataset_digest
    fields["model_id"] = model_id
    fields["run_id"] = point.run_id
    return fields


def _pairs(texts: Mapping[str, str]) -> list[Json]:
    return [{"key": key, "value": value} for key, value in sorted(texts.items())]
