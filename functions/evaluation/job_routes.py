"""The RPCs of judges that run on the server, and of the jobs in which they do; made for the UI."""

from __future__ import annotations

from functools import partial

from evaluation import invocations, jobs
from evaluation import job_messages as m
from mlcore.http import get, patch, post

_get, _post, _patch = (partial(verb, version="3.0", ajax_only=True) for verb in (get, post, patch))

JOB_RPCS = (
    _post(
        "/mlflow/scorer/invoke",
        m.InvokeScorer,
        invocations.invoke_scorer,
        "jobs.invoke_scorer",
        since="3.9",
        deviation="At most 2,000 traces; scorers that are code are refused.",
    ),
    _post(
        "/mlflow/genai/evaluate/invoke",
        m.InvokeEvaluation,
        invocations.invoke_evaluation,
        "jobs.invoke_evaluation",
        since="3.13",
        deviation="At most 2,000 traces; scorers that are code are refused.",
    ),
    _post(
        "/mlflow/issues/invoke",
        m.InvokeIssueDetection,
        invocations.invoke_issue_detection,
        "jobs.invoke_issue_detection",
        since="3.11",
        deviation="Refused: no issues are looked for.",
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
    _post("/jobs/search", m.SearchJobs, jobs.search_jobs, "requests.anybody", since="3.8", cost=1),
)
