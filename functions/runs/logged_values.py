"""The rules of logging metrics, params and tags, one at a time and in batches.

A run that this process knows is written to at once (:mod:`mlcore.repos.runs.unread_writes`). Any
other is read first, with its experiment, so every rule is checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcore import errors
from mlcore.entities.metrics import Metric, recency, stored_value
from mlcore.http import Request
from mlcore.limits import runs as limits
from mlcore.repos.runs import log_writes, runs, unread_writes
from mlcore.repos.runs.points import latest_of, latest_text, parse_latest
from mlcore.repos.runs.runs import StoredRun
from mlcore.search.fields import RUN_NAME_TAG
from runs import messages as m
from runs import model_metrics
from runs.model_metrics import Models


def log_metric(message: m.LogMetric, request: Request) -> dict[str, Any]:
    """One round trip if this process knows the run, else two: the run, then its item and the point
    side by side; so with a model too."""
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
        known = run.document.texts("params").get(param.key)
        if known is None:
            return {"params": {param.key: param.value}}, ()
        if known != param.value:
            raise errors.InvalidParameterValue(
                f"Changing param values is not allowed. Param with key='{param.key}' was already"
                f" logged with value='{known}' for run ID='{run.run_id}'. "
                f"Attempted logging new value '{param.value}'."
            )
        return {}, ()

    unread_writes.write_texts(run_id, request.workspace, decide)
    return {}


def log_batch(message: m.LogBatch, request: Request) -> dict[str, Any]:
    """One round trip if this process knows the run, else two (and one to locate the run the first
    time); with params three where others write to it as well."""
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
    latest = latest_of(metrics)
    kept_tags = {key: value for key, value in tags.items() if value or key != RUN_NAME_TAG}

    def decide(run: StoredRun) -> tuple[dict[str, Mapping[str, str]], tuple[()]]:
        return {
            "metrics": _later(run, latest),
            "params": _new_params(run, params),
            "tags": _changed(run.document.texts("tags"), kept_tags),
        }, ()

    if models.reading is None and unread_writes.write(run_id, workspace, decide, metrics):
        return
    run = runs.load(run_id, workspace, models.reading)
    points = models.points(run)
    unread = metrics and params and not points
    if not (unread and unread_writes.write_read(run, decide, metrics)):
        log_writes.write(run, decide, metrics, points)


def _later(run: StoredRun, latest: Mapping[str, Metric]) -> dict[str, str]:
    known = run.document.texts("metrics")
    return {
        key: latest_text(metric)
        for key, metric in latest.items()
        if key not in known or recency(metric) > recency(parse_latest(key, known[key]))
    }


def _new_params(run: StoredRun, params: Mapping[str, str]) -> dict[str, str]:
    if not params:
        return {}
    known = run.document.texts("params")
    conflicts = [
        {"key": key, "old_value": known[key], "new_value": value}
        for key, value in params.items()
        if known.get(key, value) != value
    ]
    if conflicts:
        raise errors.InvalidParameterValue(
            "Changing param values is not allowed. Params were already"
            f" logged='{conflicts}' for run ID='{run.run_id}'."
        )
    return {key: value for key, value in params.items() if key not in known}


def _changed(before: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if before.get(key) != text}
