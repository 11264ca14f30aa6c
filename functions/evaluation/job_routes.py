"""Routes that start judges and issue detection on the server, schedule issue detection, and search,
read or cancel jobs. MLflow's UI calls them; they exist under ``/ajax-api`` only."""

from __future__ import annotations

from functools import partial

from evaluation import issue_detections, issue_schedules, jobs, judge_invocations
from evaluation import job_messages as m
from mlcore.http import get, patch, post

_get, _post, _patch = (partial(verb, version="3.0", ajax_only=True) for verb in (get, post, patch))

JOB_RPCS = (
    _post(
        "/mlflow/scorer/invoke",
        m.InvokeScorer,
        judge_invocations.invoke_scorer,
        "jobs.invoke_scorer",
        since="3.9",
        deviation="A request names at most 2,000 traces; Python scorers run in a process without "
        "rights.",
    ),
    _post(
        "/mlflow/genai/evaluate/invoke",
        m.InvokeEvaluation,
        judge_invocations.invoke_evaluation,
        "jobs.invoke_evaluation",
        since="3.13",
        deviation="A request evaluates at most 10,000 traces; Python scorers run in a process "
        "without rights.",
    ),
    _post(
        "/mlflow/issues/invoke",
        m.InvokeIssueDetection,
        issue_detections.invoke,
        "jobs.invoke_issue_detection",
        since="3.11",
        deviation="An issue detection takes at most 2,000 traces; a provider's key must be saved "
        "as a secret.",
    ),
    _post(
        "/mlflow/issues/schedule/state",
        m.UpdateDetectionSchedule,
        issue_schedules.update_state,
        "jobs.schedule_issue_detection",
        since="3.18",
        cost=2,
        deviation="A schedule of issue detection that is not paused needs a gateway endpoint, or a "
        "saved key of a provider, that the caller may use, else 4xx.",
    ),
    _get("/mlflow/jobs/{job_id}", m.GetJob, jobs.get_status, "jobs.own_job", since="3.11", cost=1),
    _patch(
        "/mlflow/jobs/cancel/{job_id}",
        m.CancelJob,
        jobs.cancel_status,
        "jobs.own_job",
        since="3.11",
        cost=2,
    ),
    _get("/jobs/{job_id}", m.GetJob, jobs.get_job, "jobs.own_job", since="3.8", cost=1),
    _patch(
        "/jobs/cancel/{job_id}",
        m.CancelJob,
        jobs.cancel_job,
        "jobs.own_job",
        since="3.8",
        cost=2,
    ),
    _post(
        "/jobs/search",
        m.SearchJobs,
        jobs.search_jobs,
        "jobs.own_jobs",
        since="3.8",
        cost=1,
        reads=True,
    ),
)
