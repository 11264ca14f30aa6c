"""Converts the jobs that optimize prompts to the JSON of ``mlflow.PromptOptimizationJob``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from mlcore.entities.evaluation.jobs import (
    CANCELED,
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    TIMEOUT,
    Job,
)
from mlcore.entities.evaluation.prompt_optimization import (
    AGGREGATE,
    FINAL_SCORE,
    INITIAL_SCORE,
    METRIC_CALLS,
    OPTIMIZER_TYPES,
)

_STATUSES: Final = {
    PENDING: "JOB_STATUS_PENDING",
    RUNNING: "JOB_STATUS_IN_PROGRESS",
    SUCCEEDED: "JOB_STATUS_COMPLETED",
    FAILED: "JOB_STATUS_FAILED",
    TIMEOUT: "JOB_STATUS_FAILED",
    CANCELED: "JOB_STATUS_CANCELED",
}


def job(entity: Job, metrics: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Returns the JSON of a job that optimizes a prompt.

    Args:
        metrics: the latest metrics of the job's run, for its scores and its progress; None if they
            are not known.
    """
    params = entity.params
    known = metrics or {}
    initial, final = _scores(known, INITIAL_SCORE), _scores(known, FINAL_SCORE)
    optimized = (entity.result or {}).get("optimized_prompt_uri")
    return {
        "job_id": entity.job_id,
        "run_id": params["run_id"],
        "state": _state(entity, known),
        "experiment_id": params["experiment_id"],
        "source_prompt_uri": params["prompt_uri"],
        **({"optimized_prompt_uri": optimized} if entity.status == SUCCEEDED and optimized else {}),
        "config": config(params),
        "creation_timestamp_ms": entity.creation_time,
        **({"tags": params["tags"]} if params.get("tags") else {}),
        **({"initial_eval_scores": initial} if initial else {}),
        **({"final_eval_scores": final} if final else {}),
    }


def config(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON of ``mlflow.PromptOptimizationJobConfig`` from the params of a job."""
    kinds = {kind: name for name, kind in OPTIMIZER_TYPES.items()}
    given = params["optimizer_config"]
    return {
        "optimizer_type": kinds[params["optimizer_type"]],
        **({"dataset_id": params["dataset_id"]} if params["dataset_id"] else {}),
        **({"scorers": params["scorer_names"]} if params["scorer_names"] else {}),
        **({"optimizer_config_json": json.dumps(given)} if given else {}),
    }


def _state(entity: Job, metrics: Mapping[str, float]) -> dict[str, Any]:
    calls = metrics.get(METRIC_CALLS)
    most = (entity.params["optimizer_config"] or {}).get("max_metric_calls")
    state: dict[str, Any] = {"status": _STATUSES[entity.status]}
    if entity.status in (FAILED, TIMEOUT) and entity.error_message is not None:
        state["error_message"] = entity.error_message
    if calls is not None and most:
        state["metadata"] = {"progress": str(round(min(calls / most, 1.0), 2))}
    return state


def _scores(metrics: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Returns the scores by scorer name, from the metrics of a run whose keys have a prefix. The
    score over all scorers has the name ``aggregate``."""
    scores = {}
    for name, value in metrics.items():
        first, separator, scorer = name.partition(".")
        if first == prefix:
            scores[scorer if separator else AGGREGATE] = value
    return scores
