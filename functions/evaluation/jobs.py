"""Reads, cancels and searches the jobs that the server runs, such as judging traces.

MLflow serves them under two paths. ``/ajax-api/3.0/jobs`` returns whole jobs, and errors in
FastAPI's form (``{"detail": …}``); only there can jobs be searched. ``/ajax-api/3.0/mlflow/jobs``
returns the status and result of a job, and errors in MLflow's form
(``{"error_code": …, "message": …}``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from evaluation import job_messages as m
from mlcore import errors, ids, paging
from mlcore.entities.evaluation.jobs import CANCELED, FINAL, Job, as_of
from mlcore.http import Request
from mlcore.repos.evaluation import jobs
from mlcore.responses.evaluation import jobs as responses

_MAX_JOBS: Final = 1000
_MAX_ANSWER: Final = 4_000_000
"""The most characters of jobs in one response, well below Lambda's 6 MB. The job of an evaluation
of 10,000 traces has 390,000."""


def get_job(message: m.GetJob, request: Request) -> dict[str, Any]:
    with _fastapi_errors():
        return responses.job(_get(message.job_id, request))


def get_status(message: m.GetJob, request: Request) -> dict[str, Any]:
    return responses.status(_get(message.job_id, request))


def cancel_job(message: m.CancelJob, request: Request) -> dict[str, Any]:
    with _fastapi_errors():
        return responses.job(_cancel(message.job_id, request))


def cancel_status(message: m.CancelJob, request: Request) -> dict[str, Any]:
    return responses.status(_cancel(message.job_id, request))


def search_jobs(message: m.SearchJobs, request: Request) -> dict[str, Any]:
    """Returns the newest of the workspace's jobs that match the request, sorted oldest first: at
    most 1,000, and only as many as fit into a response. Where authentication is on, callers who are
    not administrators see only their own jobs."""
    now, wanted = ids.now_ms(), message.params or {}
    access = request.access
    user_id = None if access is None or access.is_admin else access.user_id()
    matching = [
        job
        for stored in jobs.of_workspace(request.workspace)
        if (job := as_of(stored, now))
        and (access is None or access.is_admin or _is_of(job, access.username, user_id))
        and (message.job_name is None or job.name == message.job_name)
        and (not message.statuses or job.status in message.statuses)
        and all(key in job.params and job.params[key] == wanted[key] for key in wanted)
    ]
    newest = list(map(responses.job, reversed(matching[-_MAX_JOBS:])))
    shown = paging.fitting(newest, lambda job: len(json.dumps(job)), _MAX_ANSWER)
    return {"jobs": shown[::-1]}


def _is_of(job: Job, username: str, user_id: int | None) -> bool:
    return job.creator == username and job.creator_id in (None, user_id)


@contextmanager
def _fastapi_errors() -> Iterator[None]:
    """Turns MLflow errors raised inside into FastAPI's form (``errors.Detailed``)."""
    try:
        yield
    except errors.MlflowError as error:
        raise errors.Detailed(error.status, error.message) from error


def _get(job_id: str, request: Request) -> Job:
    job = jobs.find(request.workspace, job_id)
    if job is None:
        raise _missing(job_id)
    return as_of(job, ids.now_ms())


def _cancel(job_id: str, request: Request) -> Job:
    def cancel(job: Job) -> Job:
        current = as_of(job, ids.now_ms())
        if current.status in FINAL:
            raise errors.InvalidParameterValue(
                f"The Job {job_id} is already finalized with status: {current.status}, "
                "it can't be updated."
            )
        return job._replace(status=CANCELED, result=None, error_message=None, lease_until=None)

    job = jobs.change(request.workspace, job_id, cancel)
    if job is None:
        raise _missing(job_id)
    return job


def _missing(job_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Job with ID {job_id} not found")
