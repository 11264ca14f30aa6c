"""Runs the job of issue detection: finds problems in traces, reports them as issues, and fills the
run that records the detection.

An interrupted job repeats its steps, and gets the answers of earlier model calls from its journal
(:mod:`judge_runner.call_journal`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from judge_runner import creator_rights
from judge_runner.issue_detection import (
    detection_parameters,
    evidence,
    findings,
    reported_issues,
    schedule_checkpoints,
    session_groups,
    triage,
)
from judge_runner.issue_detection.detection_parameters import Detection
from judge_runner.issue_detection.reported_issues import ReportedIssue
from judge_runner.job_execution import JobExecution
from mlcore import artifacts, errors, ids
from mlcore.entities.evaluation import issue_detection
from mlcore.entities.evaluation.jobs import CANCELED, SUCCEEDED, Job
from mlcore.judges.judge_model import Complete
from mlcore.observability import logger
from mlcore.repos.evaluation import job_runs
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import endings
from mlcore.repos.traces import links, traces
from mlcore.repos.traces.traces import StoredTrace

_ERROR_CHARACTERS: Final = 500
_EXCEPTION: Final = "MlflowException"
"""Name of the class that MLflow's clients know for errors of a server."""


def run(work: JobExecution, complete: Complete) -> dict[str, Any]:
    """Detects issues and ends the run of the detection. Returns the job's result: ``{"summary",
    "issues" (a number), "new_issue_count", "total_traces_analyzed", "total_cost_usd"}``.

    Raises:
        MlflowError: the experiment was deleted, or the model cannot be asked.
        JobStopped, OutOfTime: see :mod:`judge_runner.job_execution`.
    """
    detection = detection_parameters.of_job(work, complete)
    workspace = work.job.workspace
    experiment = experiments.get_active(detection.experiment_id, workspace).experiment
    if work.job.stage is None:  # otherwise an earlier call has done it
        links.put(creator_rights.writable_run(work.job).run_id, detection.trace_ids)
    work.enter_stage("Selecting traces")
    chosen = session_groups.sample(_traces(detection, workspace), issue_detection.MAX_GROUPS)
    reports: list[ReportedIssue] = []
    if chosen:
        work.enter_stage("Looking for failures in traces")
        failures = triage.find_failures(detection, chosen)
        if failures:
            work.enter_stage("Grouping failures")
            problems = findings.find(detection, failures)
            work.enter_stage("Comparing with known issues")
            reports = reported_issues.report(detection, problems, experiment)
            work.enter_stage("Explaining issues in traces")
            evidence.link(detection, reports)
    analyzed = sum(len(group.traces) for group in chosen)
    result = {
        "summary": summary(reports, analyzed),
        "issues": len(reports),
        "new_issue_count": sum(report.is_new for report in reports),
        "total_traces_analyzed": analyzed,
        "total_cost_usd": work.dollars,
    }
    _finish(detection, reports, result)
    if newest := work.job.params.get("newest_trace"):
        current = experiments.get(detection.experiment_id, workspace)
        schedule_checkpoints.advance(current, (newest[0], newest[1]), detection.run_id)
    return result


def end_failed(job: Job, message: str) -> None:
    """Ends the run of a failed issue detection job with status FAILED and a tag with the error."""
    job_runs.end(job, "FAILED", {issue_detection.ERROR_TAG: error_text(message)})


def error_text(message: str) -> str:
    """Returns the text of the run's tag that says why its issue detection failed."""
    text = f"{_EXCEPTION}: {message}"
    return text if len(text) <= _ERROR_CHARACTERS else f"{text[: _ERROR_CHARACTERS - 1]}…"


def end_stopped(job: Job) -> None:
    """Ends the run of a job that will not continue, with the status KILLED if the job was
    cancelled, otherwise FAILED. Does nothing for a job that succeeded."""
    if job.status == CANCELED:
        job_runs.end(job, "KILLED")
    elif job.status != SUCCEEDED:
        end_failed(job, job.error_message or "The job has timed out.")


def summary(reports: Sequence[ReportedIssue], analyzed: int) -> str:
    """Returns the summary of an issue detection as text in Markdown: the number of issues, and for
    each its name, severity, description, causes and categories."""
    if not reports:
        return f"No issues were found in {analyzed} traces."
    parts = [f"Issues found in {analyzed} traces: {len(reports)}"]
    for report in reports:
        issue = report.issue
        again = "" if report.is_new else ", known before"
        parts += [
            f"## {issue.name} ({issue.severity or 'no severity'}{again})",
            issue.description,
            f"- Root causes: {'; '.join(issue.root_causes) or 'unknown'}",
            f"- Categories: {', '.join(issue.categories) or 'none'}",
        ]
    return "\n\n".join(parts) + "\n"


def _traces(detection: Detection, workspace: str) -> list[StoredTrace]:
    """Returns the job's traces that still exist in its experiment: the creator's rights were
    checked for this experiment."""
    return [
        stored
        for stored in traces.find_many(detection.trace_ids, workspace)
        if stored is not None and stored.experiment.experiment_id == detection.experiment_id
    ]


def _finish(
    detection: Detection, reports: Sequence[ReportedIssue], result: Mapping[str, Any]
) -> None:
    """Writes the run's files and tags, and ends the run. It may be repeated; a run that has ended
    stays unchanged."""
    job = detection.work.job
    detection.work.rights.check()
    run = creator_rights.writable_run(job)
    details = {
        "total_traces_analyzed": result["total_traces_analyzed"],
        "num_issues": len(reports),
        "model": detection.model_uri,
        "scorer_names": [triage.JUDGE],
        "triage_run_id": detection.run_id,
        "max_issues": issue_detection.MAX_ISSUES,
        "experiment_id": detection.experiment_id,
        "elapsed_seconds": round((ids.now_ms() - job.creation_time) / 1000, 1),
        "cost_usd": result["total_cost_usd"],
    }
    issues = [
        {
            "issue_id": report.issue.issue_id,
            "name": report.issue.name,
            "description": report.issue.description,
            "root_causes": report.issue.root_causes,
            "severity": report.issue.severity,
            "status": report.issue.status,
        }
        for report in reports
    ]
    files = {
        "summary.md": result["summary"],
        "issues.json": json.dumps(issues, indent=2, ensure_ascii=False),
        "metadata.json": json.dumps(details, indent=2, ensure_ascii=False),
    }
    if reports:
        _write_files(run.item.artifact_uri, job.workspace, files)
    tags = {issue_detection.ANALYZED_TAG: str(result["total_traces_analyzed"])}
    if result["total_cost_usd"] is not None:
        tags[issue_detection.COST_TAG] = str(result["total_cost_usd"])
    endings.end(run, "FINISHED", ids.now_ms(), tags=tags)


def _write_files(location: str, workspace: str, files: Mapping[str, str]) -> None:
    try:
        for name, text in files.items():
            artifacts.store().put(artifacts.locate(location, workspace, name), text.encode())
    except errors.InvalidParameterValue as error:
        # The experiment's files are in a store to which this server does not write.
        logger.warning("a detection's files were not written", extra={"why": error.message})
