"""Logs metrics, params and tags, singly and in batches.

A run that this process has cached is usually written without a read
(:mod:`mlcore.repos.runs.core.cached_run_writes`), but never if a metric names a logged model. Any
other run is read first, with its experiment, so every rule is checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcore import errors, reserved_tags
from mlcore.entities.metrics import Metric, stored_value
from mlcore.http import Request
from mlcore.limits import runs as limits
from mlcore.repos.runs.core import cached_run_writes, log_writes, rewinding, runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import rewinds
from mlcore.repos.runs.history.latest_point_text import latest_of, newer_texts
from runs import messages as m
from runs import model_metrics
from runs.model_metrics import Models


def log_metric(message: m.LogMetric, request: Request) -> dict[str, Any]:
    """Logs one metric point. Usually takes one round trip if the run is cached, otherwise two: a
    read of the run, then a write of its item and the point; one more to locate a run that this
    process has not seen. The run is always read if the point is older than the metric's latest, if
    other processes also write to the run, or if the metric names a logged model, which is read in
    parallel with the run."""
    metric = limits.check_metric(message)
    model_metrics.check_dataset(message)
    models = Models([message], request.workspace)
    points = [metric._replace(value=stored_value(metric.value))]
    _log(message.run_id or message.run_uuid, request.workspace, models, points, {}, {})
    return {}


def log_param(message: m.LogParam, request: Request) -> dict[str, Any]:
    param = limits.check_param(message)
    run_id = message.run_id or message.run_uuid

    def decide(run: StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        current_value = run.document.texts("params").get(param.key)
        if current_value is None:
            return {"params": {param.key: param.value}}, ()
        if current_value != param.value:
            raise errors.InvalidParameterValue(
                f"Changing param values is not allowed. Param with key='{param.key}' was already"
                f" logged with value='{current_value}' for run ID='{run.run_id}'. "
                f"Attempted logging new value '{param.value}'."
            )
        return {}, ()

    cached_run_writes.write_texts(run_id, request.workspace, decide)
    return {}


def log_batch(message: m.LogBatch, request: Request) -> dict[str, Any]:
    """Logs metrics, params and tags. Usually takes one round trip if the run is cached. Otherwise,
    and if a metric names a logged model, other processes write to the run, or the request is large
    or has only points that are not the latest, the run is read first: two round trips, or three if
    the request has metrics and also params or tags. One more locates a run that this process has
    not seen."""
    batch = limits.check_log_batch(message.run_id, message.metrics, message.params, message.tags)
    for metric in message.metrics:
        model_metrics.check_dataset(metric)
    models = Models(message.metrics, request.workspace)
    points = [metric._replace(value=stored_value(metric.value)) for metric in batch.metrics]
    _log(message.run_id, request.workspace, models, points, dict(batch.params), dict(batch.tags))
    return {}


def _log(
    run_id: str,
    workspace: str,
    models: Models,
    metrics: Sequence[Metric],
    params: Mapping[str, str],
    tags: Mapping[str, str],
) -> None:
    """Writes the metrics, params and tags of a request. If it meets a rewind of the run, completes
    the rewind and starts again, because the rewind may have deleted points that were just
    written."""
    if metrics:
        rewinding.retried(lambda: _try(run_id, workspace, models, metrics, params, tags))
    else:
        _try(run_id, workspace, models, metrics, params, tags)


def _try(
    run_id: str,
    workspace: str,
    models: Models,
    metrics: Sequence[Metric],
    params: Mapping[str, str],
    tags: Mapping[str, str],
) -> None:
    latest = latest_of(metrics)
    first: list[StoredRun] = []

    def decide(run: StoredRun) -> tuple[dict[str, Mapping[str, str]], tuple[()]]:
        if metrics:
            first.append(run)
            rewinds.check_unchanged(run.item, first[0].item)
        return {
            "metrics": newer_texts(run.document.texts("metrics"), latest),
            "params": _new_params(run, params),
            "tags": changed_tags(run, tags),
        }, ()

    if models.reading is None and cached_run_writes.write(run_id, workspace, decide, metrics):
        return
    first.clear()
    run = runs.load(run_id, workspace, models.reading)
    points = models.points(run)
    try_optimistic = metrics and params and not points
    if not (try_optimistic and cached_run_writes.write_read(run, decide, metrics)):
        log_writes.write(run, decide, metrics, points)


def _new_params(run: StoredRun, params: Mapping[str, str]) -> dict[str, str]:
    """Returns the params that the run does not have. Raises InvalidParameterValue if one has
    another value."""
    if not params:
        return {}
    stored = run.document.texts("params")
    conflicts = [
        {"key": key, "old_value": stored[key], "new_value": value}
        for key, value in params.items()
        if stored.get(key, value) != value
    ]
    if conflicts:
        raise errors.InvalidParameterValue(
            "Changing param values is not allowed. Params were already"
            f" logged='{conflicts}' for run ID='{run.run_id}'."
        )
    return {key: value for key, value in params.items() if key not in stored}


def changed_tags(run: StoredRun, tags: Mapping[str, str]) -> dict[str, str]:
    """Returns those of the given tags whose values differ from the run's. An empty run name is left
    out: it changes nothing."""
    stored = run.document.texts("tags")
    return {
        key: value
        for key, value in tags.items()
        if stored.get(key) != value and (value or key != reserved_tags.RUN_NAME)
    }
