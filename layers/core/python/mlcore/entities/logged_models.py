"""A logged model and the points of its metrics."""

from __future__ import annotations

from typing import NamedTuple


class ModelMetric(NamedTuple):
    """A point of a metric of a logged model. The value NaN is stored as 0, as in MLflow."""

    key: str
    value: float
    timestamp: int
    step: int
    run_id: str
    dataset_name: str | None = None
    dataset_digest: str | None = None


class LoggedModel(NamedTuple):
    model_id: str
    experiment_id: str
    name: str
    artifact_location: str
    creation_time: int
    last_update_time: int
    status: str
    """``LOGGED_MODEL_PENDING``, ``…_READY``, ``…_UPLOAD_FAILED`` or ``…_STATUS_UNSPECIFIED``."""
    lifecycle_stage: str
    model_type: str
    source_run_id: str
    params: dict[str, str]
    tags: dict[str, str]
    metrics: tuple[ModelMetric, ...] = ()
    """All points in the order in which they were logged."""
