"""MLflow's JSON of runs and metrics. Unset fields and empty lists are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from mlcore.entities.metrics import Metric, MetricColumns
from mlcore.entities.runs import DatasetInput, Run
from mlcore.wire.encoding import Encoded, number, quoted

Json = dict[str, Any]


def data(entity: Run) -> Json:
    """Returns a run's latest metrics, params and tags as the JSON of ``mlflow.RunData``."""
    return _filled(
        metrics=[metric(point) for _, point in sorted(entity.metrics.items())],
        params=_pairs(entity.params),
        tags=_pairs(entity.tags),
    )


def encoded_data(entity: Run) -> Encoded:
    """Returns the JSON of a run's data, as :func:`data` makes it, as text."""
    points = [point for _, point in sorted(entity.metrics.items())]
    lists = (
        ("metrics", [_point(quoted(point.key), point) for point in points]),
        ("params", _encoded_pairs(entity.params)),
        ("tags", _encoded_pairs(entity.tags)),
    )
    filled = [f'"{name}":[{",".join(entries)}]' for name, entries in lists if entries]
    return Encoded("{" + ",".join(filled) + "}")


def run(entity: Run, run_data: Json | Encoded | None = None) -> Json:
    """Returns the JSON of ``mlflow.Run``. ``run_data`` is the JSON of the run's data, if the caller
    has built it already."""
    return {
        "info": run_info(entity),
        "data": data(entity) if run_data is None else run_data,
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
    """Returns the JSON of MLflow's message ``mlflow.RunInfo``."""
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
    if not entity.end_time:  # MLflow treats 0 as missing
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
    """Returns the JSON of MLflow's message ``mlflow.MetricWithRunId``."""
    return {**metric(point), "run_id": run_id}


def encoded_points(key: str, points: Iterable[Metric]) -> Encoded:
    """Returns as JSON text the list of ``mlflow.Metric`` messages for the points of one metric."""
    name = quoted(key)
    return Encoded("[" + ",".join([_point(name, point) for point in points]) + "]")


def encoded_points_of_runs(key: str, series: Iterable[tuple[str, MetricColumns]]) -> Encoded:
    """Returns as JSON text the list of ``mlflow.MetricWithRunId`` messages for the points of one
    metric in several runs."""
    name = quoted(key)
    points = []
    for run_id, columns in series:
        suffix = f',"run_id":{quoted(run_id)}}}'
        steps, timestamps, values = columns
        if all(map(isfinite, values)):  # the common case, made fast for thousands of points
            points += [
                f'{{"key":{name},"value":{value!r},"timestamp":{timestamp},"step":{step}{suffix}'
                for step, timestamp, value in zip(steps, timestamps, values, strict=True)
            ]
        else:
            points += [_point(name, point)[:-1] + suffix for point in columns.points(key)]
    return Encoded("[" + ",".join(points) + "]")


def _point(name: str, point: Metric) -> str:
    _, value, timestamp, step = point
    value_text = repr(value) if value - value == 0 else number(value)
    return f'{{"key":{name},"value":{value_text},"timestamp":{timestamp},"step":{step}}}'


def _encoded_pairs(texts: Mapping[str, str]) -> list[str]:
    return [
        f'{{"key":{quoted(key)},"value":{quoted(value)}}}' for key, value in sorted(texts.items())
    ]


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
