"""Runs the job of an evaluation: several judges assess traces, and their aggregated results are
logged as metrics of a run."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from judge_runner import assessing, scoring, trace_scoring
from judge_runner.assessing import Task
from judge_runner.job_execution import JobExecution
from mlcore import errors, ids
from mlcore.db.attributes import ItemAttribute
from mlcore.db.keys import lsi3_run
from mlcore.entities.evaluation.jobs import CANCELED, SUCCEEDED, Job
from mlcore.entities.metrics import Metric, stored_value
from mlcore.entities.runs import RUNNING
from mlcore.entities.traces import Assessment
from mlcore.judges import content
from mlcore.judges.chat import Complete
from mlcore.judges.content import Subject
from mlcore.limits.evaluation.code_scorers import parse_scorer
from mlcore.models.runs import Run as RunItem
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core import writes as run_writes
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import metric_history
from mlcore.repos.runs.history.latest_point_text import latest_text
from mlcore.repos.traces import links
from mlcore.repos.traces.traces import StoredTrace

_AGGREGATES: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "min": min,
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
    "variance": statistics.pvariance,
    "p90": lambda values: _percentile(values, 0.9),
}


def run(work: JobExecution, complete: Complete) -> dict[str, Any]:
    """Assesses the traces and finishes the evaluation run. Returns the job's result. Raises the
    errors of :func:`judge_runner.trace_scoring.run`."""
    params, workspace = work.job.params, work.job.workspace
    tasks = [
        Task(work.job.job_id, parse_scorer(json.loads(text)), version, params["run_id"])
        for text, version in zip(
            params["serialized_scorers"], params["scorer_versions"], strict=True
        )
    ]
    for task in tasks:
        scoring.check_source(task, work.job, task.judge.name)
    links.put(params["run_id"], params["trace_ids"])
    stored = trace_scoring.load_traces(params["trace_ids"], workspace)
    made: list[tuple[Task, Assessment]] = []
    ways_of_tasks = [
        scoring.new_scoring(task, work.job, complete, expectations=True) for task in tasks
    ]
    subjects: dict[str, Subject] = {}
    by_id = {each.trace_id: each for each in stored}

    def assess(trace: StoredTrace) -> None:
        work.check()
        subject = content.read(trace)
        subjects[trace.trace_id] = subject
        for task, ways in zip(tasks, ways_of_tasks, strict=True):
            if not task.judge.of_sessions:
                assessments = assessing.existing_assessments(task, subject) or ways.trace(subject)
                assessing.write(trace, assessments)
                made.extend((task, assessment) for assessment in assessments)
        work.record_result(trace.trace_id, {})

    trace_scoring.run_in_parallel(assess, stored)
    for task, ways in zip(tasks, ways_of_tasks, strict=True):
        if task.judge.of_sessions:
            for session in _sessions(list(subjects.values())):
                work.check()
                first = content.chronological(session)[0]
                assessments = assessing.existing_assessments(task, first) or ways.session(session)
                assessing.write(by_id[first.trace_id], assessments)
                made += [(task, assessment) for assessment in assessments]
    finish(params["run_id"], workspace, work.summarize(aggregate(made)))
    return {
        "run_id": params["run_id"],
        "total_traces": len(params["trace_ids"]),
        "scorer_count": len(tasks),
    }


def aggregate(made: Sequence[tuple[Task, Assessment]]) -> dict[str, float]:
    """Returns metrics by name (``judge/mean``), computed from the assessments whose value is a
    number, a boolean, or yes or no."""
    values: dict[str, list[float]] = {}
    aggregations: dict[str, Sequence[str]] = {}
    for task, assessment in made:
        number = _number(assessment)
        if number is not None:
            values.setdefault(assessment.name, []).append(number)
            is_own = assessment.name == task.judge.name
            aggregations[assessment.name] = task.judge.aggregations if is_own else ("mean",)
    return {
        f"{name}/{aggregation}": float(_AGGREGATES[aggregation](numbers))
        for name, numbers in values.items()
        for aggregation in aggregations[name]
    }


def finish(run_id: str, workspace: str, summary: Mapping[str, Any]) -> None:
    """Logs the aggregated metrics and ends the run. Repeating it with the same summary (see
    :class:`Job`) changes nothing."""
    time, metrics = summary["time"], summary["metrics"]
    stored_run = runs.load(run_id, workspace)
    points = [Metric(name, stored_value(value), time, 0) for name, value in metrics.items()]
    if points and stored_run.item.status == RUNNING:
        metric_history.write(stored_run.experiment.experiment_id, run_id, points)
    _end(stored_run, "FINISHED", time, points)


def end_failed(job: Job) -> None:
    """Ends the run of a failed job with the status FAILED."""
    _end_of(job, "FAILED")


def end_stopped(job: Job) -> None:
    """Ends the run of a job that will not continue, with the status KILLED if the job was
    cancelled, otherwise FAILED. Does nothing for a job that succeeded."""
    if job.status != SUCCEEDED:
        _end_of(job, "KILLED" if job.status == CANCELED else "FAILED")


def _end_of(job: Job, status: str) -> None:
    try:
        stored_run = runs.load(job.params["run_id"], job.workspace)
        _end(stored_run, status, ids.now_ms(), ())
    except (errors.ResourceDoesNotExist, errors.InvalidParameterValue):
        return  # it was deleted


def _end(run: StoredRun, status: str, now: int, points: Sequence[Metric]) -> None:
    """Ends a run and sets the latest values of its metrics. A run that has ended is not changed."""
    if run.item.status != RUNNING:
        return
    attributes: list[tuple[ItemAttribute[Any], Any]] = [
        (RunItem.status, status),
        (RunItem.lsi3sk, lsi3_run(status, run.item.start_time, run.run_id)),
        (RunItem.end_time, now),
    ]
    metrics = {point.key: latest_text(point) for point in points}
    run_writes.write(run, lambda _: ({"metrics": metrics} if metrics else {}, ()), attributes)


def _sessions(subjects: Sequence[Subject]) -> list[list[Subject]]:
    groups: dict[str, list[Subject]] = {}
    for subject in content.chronological(subjects):
        if subject.session:
            groups.setdefault(subject.session, []).append(subject)
    return list(groups.values())


def _number(assessment: Assessment) -> float | None:
    if assessment.error is not None:
        return None
    if isinstance(assessment.value, bool | int | float):
        return float(assessment.value)
    word = assessment.value.lower() if isinstance(assessment.value, str) else ""
    return float(word == "yes") if word in ("yes", "no") else None


def _percentile(values: Sequence[float], share: float) -> float:
    """Returns a percentile of the values, interpolated linearly between the two nearest values as
    NumPy does."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
