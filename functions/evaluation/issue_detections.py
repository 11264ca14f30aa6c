"""Starts the detection of issues in existing traces: a run, and the job that fills it."""

from __future__ import annotations

from typing import Any, Final

from evaluation import detection_models, experiment_lookup
from evaluation import job_messages as m
from evaluation.judge_invocations import copy_list, load_traces
from mlcore import errors, ids
from mlcore.entities.evaluation import issue_detection
from mlcore.entities.evaluation.detection_priorities import Priorities
from mlcore.entities.evaluation.issue_detection import (
    MAX_CATEGORIES,
    MAX_CATEGORY_LENGTH,
    MAX_INSTRUCTIONS_LENGTH,
)
from mlcore.entities.experiments import Experiment
from mlcore.http import Request
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import issue_detections, job_runs
from mlcore.repos.gateway import configuration
from mlcore.wire import checks

MAX_TRACES: Final = 2_000
"""The most traces that one request may name."""


def invoke(message: m.InvokeIssueDetection, request: Request) -> dict[str, Any]:
    """Creates a run, and a job that detects issues in traces and ends the run. Returns their ids.

    Raises:
        InvalidParameterValue: the request names no model that can be called, a key of another
            provider, or no traces; it exceeds a limit; or the experiment is deleted.
        ResourceDoesNotExist: there is no such experiment, endpoint or key.
        ResourceAlreadyExists: a detection is running in the experiment.
        PermissionDenied: a trace is in another experiment.
        RequestLimitExceeded: the queue accepts no jobs. Nothing is stored.
    """
    trace_ids = list(dict.fromkeys(copy_list(message.trace_ids)))
    if not trace_ids:
        raise errors.InvalidParameterValue("Please select at least one trace to analyze.")
    if len(trace_ids) > MAX_TRACES:
        raise errors.InvalidParameterValue(
            f"At most {MAX_TRACES} traces can be analyzed at once, got {len(trace_ids)}."
        )
    categories = _categories(message.categories)
    if len(message.instructions) > MAX_INSTRUCTIONS_LENGTH:
        raise errors.InvalidParameterValue(
            f"instructions must have at most {MAX_INSTRUCTIONS_LENGTH} characters"
        )
    model = detection_models.of_message(message)
    model.check_usable(configuration.read(request.workspace))
    experiment = experiment_lookup.get_active(message.experiment_id, request)
    load_traces(trace_ids, experiment, request)
    run_id = ids.new_ulid()
    priorities = Priorities(tuple(categories), message.instructions)
    job = issue_detections.new_job(
        experiment, run_id, trace_ids, priorities, model, request.creator()
    )
    tags = {
        **issue_detections.run_tags(categories, model, len(trace_ids)),
        issue_detection.JOB_TAG: job.job_id,
    }
    _record_running(experiment, job.job_id, run_id)
    try:
        job_runs.submit(job, job_runs.new_run(job, experiment, tags=tags), experiment)
    except (errors.InvalidParameterValue, errors.RequestLimitExceeded):
        issue_detections.withdraw(experiment, job.job_id)
        raise
    return {"job_id": job.job_id, "run_id": run_id}


def _categories(value: Any) -> list[str]:
    # The field is decoded as any type, so its type is checked here.
    checks.run({"categories": (checks.array,)}, {"categories": value}, stopped=True)
    categories = copy_list(value)
    if len(categories) > MAX_CATEGORIES or not all(
        isinstance(each, str) and 1 <= len(each) <= MAX_CATEGORY_LENGTH for each in categories
    ):
        raise errors.InvalidParameterValue(
            f"categories must contain at most {MAX_CATEGORIES} nonempty strings of at most "
            f"{MAX_CATEGORY_LENGTH} characters"
        )
    return list(dict.fromkeys(categories))


def _record_running(experiment: Experiment, job_id: str, run_id: str) -> None:
    """Records that a job detects issues in the experiment. Raises ResourceAlreadyExists if another
    job already does."""
    running = retry_on_conflict(
        "experiment", lambda: issue_detections.begin(experiment, job_id, run_id)
    )
    if running is not None:
        raise errors.ResourceAlreadyExists(
            "Issue detection is already running for this experiment "
            f"(run {running.run_id}). Wait for it to finish, or cancel it, before starting "
            "another."
        )
