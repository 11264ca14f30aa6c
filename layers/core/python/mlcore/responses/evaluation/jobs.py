"""Converts background jobs to the JSON of MLflow's two routes that return jobs."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.jobs import (
    CANCELED,
    FAILED,
    OPTIMIZE_PROMPT,
    PENDING,
    RUNNING,
    TIMEOUT,
    WAITS_FOR_CONCURRENCY,
    Job,
    expected_dollars,
)


def job(entity: Job) -> dict[str, Any]:
    """Returns the JSON of a job for ``/ajax-api/3.0/jobs``."""
    return {
        "job_id": entity.job_id,
        "creation_time": entity.creation_time,
        "job_name": entity.name,
        "params": entity.params,
        "timeout": entity.timeout,
        "status": entity.status,
        "result": _result(entity),
        "error_message": _error(entity),
        "retry_count": entity.retry_count,
        "last_update_time": entity.last_update_time,
        "status_details": _details(entity),
        "creator": entity.creator,
        "status_message": None,
        "progress": None
        if (progress := _progress(entity)) is None
        else {"phase": None, **progress},
        "progress_updated_at": None if progress is None else entity.last_update_time,
    }


def status(entity: Job) -> dict[str, Any]:
    """Returns the JSON of a job's status for ``/ajax-api/3.0/mlflow/jobs``."""
    progress = _progress(entity)
    return {
        "status": entity.status,
        "result": _result(entity),
        "error_message": _error(entity),
        "status_details": _details(entity),
        "status_message": None,
        "progress": progress,
        "progress_updated_at": None if progress is None else entity.last_update_time,
    }


def _result(entity: Job) -> Any:
    """Returns the result of a finished job, the error message of a failed one; None for a job that
    is pending, running or canceled."""
    if entity.status in (PENDING, RUNNING, CANCELED):
        return None
    return entity.error_message if entity.status in (FAILED, TIMEOUT) else entity.result


def _error(entity: Job) -> str | None:
    return entity.error_message if entity.status in (FAILED, TIMEOUT) else None


def _details(entity: Job) -> dict[str, Any] | None:
    """Returns the details of a job: the cost of its model calls so far in US dollars and, while it
    runs, its stage and the expected cost at its end. None if none of these is known."""
    is_running = entity.status in (PENDING, RUNNING)
    expected = expected_dollars(entity) if is_running else None
    stage = WAITS_FOR_CONCURRENCY if entity.throttled else entity.stage
    details = {
        "stage": stage if is_running else None,
        "cost_usd": entity.dollars,
        "expected_cost_usd": expected,
    }
    return {name: value for name, value in details.items() if value is not None} or None


def _progress(entity: Job) -> dict[str, Any] | None:
    """Returns the progress of a running job; None if it is not running or its total is unknown."""
    if entity.status != RUNNING or entity.total is None:
        return None
    unit = "record" if entity.name == OPTIMIZE_PROMPT else "trace"
    return {"completed": entity.completed or 0, "total": entity.total, "unit": unit}
