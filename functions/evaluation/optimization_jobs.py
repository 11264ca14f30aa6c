"""Shows, cancels and deletes the jobs that optimize prompts."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Final

from evaluation import optimization_messages as m
from mlcore import errors, ids, paging
from mlcore.entities.evaluation.jobs import (
    CANCELED,
    FINAL,
    OPTIMIZE_PROMPT,
    Job,
    as_of,
)
from mlcore.http import Request
from mlcore.repos.evaluation import job_runs, jobs
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.traces import run_deletion
from mlcore.responses.evaluation import prompt_optimization as responses

_MAX_ANSWER: Final = 4_000_000
"""The most characters of jobs in one response."""


def get_job(message: m.GetPromptOptimizationJob, request: Request) -> dict[str, Any]:
    """Returns a prompt optimization job, with the scores and the progress that are logged as
    metrics of its run."""
    job = as_of(_find(message.job_id, request), ids.now_ms())
    return {"job": responses.job(job, _metrics(job))}


def search_jobs(message: m.SearchPromptOptimizationJobs, request: Request) -> dict[str, Any]:
    """Returns the prompt optimization jobs of an experiment, sorted oldest first. If they do not
    fit into a response, the oldest are left out."""
    now = ids.now_ms()
    all_jobs = [
        responses.job(as_of(job, now))
        for job in jobs.of_workspace(request.workspace)
        if job.name == OPTIMIZE_PROMPT and job.params["experiment_id"] == message.experiment_id
    ]
    shown = paging.fitting(all_jobs[::-1], lambda each: len(json.dumps(each)), _MAX_ANSWER)[::-1]
    return {"jobs": shown} if shown else {}


def cancel_job(message: m.CancelPromptOptimizationJob, request: Request) -> dict[str, Any]:
    """Cancels a prompt optimization job and ends its run as KILLED.

    Raises InvalidParameterValue for a job that has ended. If that job was cancelled, its run is
    ended nevertheless: the request that cancelled the job may have failed before it ended the run.
    """
    existing = _find(message.job_id, request)

    def cancel(current: Job) -> Job:
        status = as_of(current, ids.now_ms()).status
        if status in FINAL:
            if status == CANCELED:
                job_runs.end(current, "KILLED")
            raise errors.InvalidParameterValue(
                f"The Job {current.job_id} is already finalized with status: {status}, "
                "it can't be updated."
            )
        return current._replace(status=CANCELED, result=None, error_message=None, lease_until=None)

    job = jobs.change(request.workspace, existing.job_id, cancel)
    if job is None:
        raise _missing(message.job_id)
    job_runs.end(job, "KILLED")
    return {"job": responses.job(job)}


def delete_job(message: m.DeletePromptOptimizationJob, request: Request) -> dict[str, Any]:
    """Marks the run of a prompt optimization job as deleted and then deletes the job, so that an
    interrupted call can be repeated."""
    job = _find(message.job_id, request)
    run = _run_of(job)
    if run is not None:
        with contextlib.suppress(errors.ResourceDoesNotExist):  # permanently deleted
            run_deletion.mark_deleted(run, request.workspace)
    jobs.delete(request.workspace, job.job_id)
    return {}


def _find(job_id: str, request: Request) -> Job:
    job = jobs.find(request.workspace, job_id)
    if job is None or job.name != OPTIMIZE_PROMPT:
        raise _missing(job_id)
    return job


def _missing(job_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Job with ID {job_id} not found")


def _metrics(job: Job) -> dict[str, float]:
    run = _run_of(job)
    if run is None:
        return {}
    return {name: metric.value for name, metric in runs.metrics(run.document).items()}


def _run_of(job: Job) -> StoredRun | None:
    """Returns the run of a job. None if it was permanently deleted, or moved to another experiment,
    for which the caller's rights were not checked."""
    try:
        run = runs.load(job.params["run_id"], job.workspace)
    except errors.ResourceDoesNotExist:
        return None
    return run if run.experiment.experiment_id == job.params["experiment_id"] else None
