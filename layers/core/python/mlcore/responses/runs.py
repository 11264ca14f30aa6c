"""Runs and metrics in the shape of MLflow's JSON: unset fields and empty lists are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mlcore.entities.metrics import Metric
from mlcore.entities.runs import DatasetInput, Run

Json = dict[str, Any]


def run(entity: Run) -> Json:
    """``mlflow.Run``."""
    return {
        "info": run_info(entity),
        "data": _filled(
            metrics=[metric(point) for _, point in sorted(entity.metrics.items())],
            params=_pairs(entity.params),
            tags=_pairs(entity.tags),
        ),
        "inputs": _filled(
            dataset_inputs=[_dataset_input(entry) for entry in entity.dataset_inputs],
            model_inputs=[{"model_id": model_id} for model_id in entity.model_inputs],
        ),
        "outputs": _filled(
            model_outputs=[
                {"model_id": output.model_id, "step": output.step}
                for output in entity.model_outputs
            ]
        ),
    }


def run_info(entity: Run) -> Json:
    """``mlflow.RunInfo``."""
    info = {
        "run_uuid": entity.run_id,
        "experiment_id": entity.experiment_id,
        "run_name": entity.run_name,
        "user_id": entity.user_id,
        "status": entity.status,
        "start_time": entity.start_time,
        "end_time": entity.end_time,
        "artifact_uri": entity.artifact_uri,
        "lifecycle_stage": entity.lifecycle_stage,
        "run_id": entity.run_id,
    }
    if not entity.end_time:  # 0 is as good as none to MLflow
        del info["end_time"]
    return info


def metric(point: Metric) -> Json:
    return {
        "key": point.key,
        "value": point.value,
        "timestamp": point.timestamp,
        "step": point.step,
    }


def metric_of_run(point: Metric, run_id: str) -> Json:
    """``mlflow.MetricWithRunId``."""
    return {**metric(point), "run_id": run_id}


def _dataset_input(entry: DatasetInput) -> Json:
    dataset = entry.dataset
    fields = {
        "name": dataset.name,
        "digest": dataset.digest,
        "source_type": dataset.source_type,
        "source": dataset.source,
        "schema": dataset.schema,
        "profile": dataset.profile,
    }
    return {
        **_filled(tags=[{"key": tag.key, "value": tag.value} for tag in entry.tags]),
        "dataset": {name: value for name, value in fields.items() if value is not None},
    }


def _pairs(texts: Mapping[str, str]) -> list[Json]:
    return [{"key": key, "value": value} for key, value in sorted(texts.items())]


def _filled(**lists: Iterable[Json]) -> Json:
    return {name: entries for name, entries in lists.items() if entries}
