"""Jobs in the shapes of MLflow's two ways to ask for them."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.jobs import CANCELED, FAILED, PENDING, RUNNING, TIMEOUT, Job


def job(one: Job) -> dict[str, Any]:
    """As ``/ajax-api/3.0/jobs`` answers."""
    return {
        "job_id": one.job_id,
        "creation_time": one.creation_time,
        "job_name": one.name,
        "params": one.params,
        "timeout": one.timeout,
        "status": one.status,
        "result": _result(one),
        "error_message": _error(one),
        "retry_count": one.retry_count,
        "last_update_time": one.last_update_time,
        "status_details": None,
        "creator": one.creator,
        "status_message": None,
        "progress": None if (told := _progress(one)) is None else {"phase": None, **told},
        "progress_updated_at": None if told is None else one.last_update_time,
    }


def status(one: Job) -> dict[str, Any]:
    """As ``/ajax-api/3.0/mlflow/jobs`` answers."""
    told = _progress(one)
    return {
        "status": one.status,
        "result": _result(one),
        "error_message": _error(one),
        "status_details": None,
        "status_message": None,
        "progress": told,
        "progress_updated_at": None if told is None else one.last_update_time,
    }


def _result(one: Job) -> Any:
    """Of a job that failed, why; none of one that is not done."""
    if one.status in (PENDING, RUNNING, CANCELED):
        return None
    return one.error_message if one.status in (FAILED, TIMEOUT) else one.result


def _error(one: Job) -> str | None:
    return one.error_message if one.status in (FAILED, TIMEOUT) else None


def _progress(one: Job) -> dict[str, Any] | None:
    """How far a job is that somebody works on."""
    if one.status != RUNNING or one.total is None:
        return None
    return {"completed": one.completed or 0, "total": one.total, "unit": "trace"}
