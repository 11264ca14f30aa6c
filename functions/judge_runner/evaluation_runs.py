"""Runs the job of an evaluation: several judges assess traces, and their aggregated results are
logged as metrics of a run."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from judge_runner import assessing, creator_rights, scorer_source_check, scoring, trace_scoring
from judge_runner.assessing import Task
from judge_runner.job_execution import JobExecution
from judge_runner.scoring import Scoring
from mlcore import reserved_tags
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.jobs import CANCELED, SUCCEEDED, Job, deadline
from mlcore.entities.metrics import Metric, stored_value
from mlcore.entities.runs import RUNNING
from mlcore.entities.traces import Assessment
from mlcore.judges import trace_content
from mlcore.judges.judge_model import Complete
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.repos.evaluation import job_calls, job_runs
from mlcore.repos.evaluation.job_calls import CallId
from mlcore.repos.runs.core import endings
from mlcore.repos.runs.history import metric_history
from mlcore.repos.runs.history.latest_point_text import latest_of
from mlcore.repos.traces import links, traces
from mlcore.repos.traces.traces import StoredTrace

_Scorer = tuple[Task, Scoring]
_KEPT_AFTER_DEADLINE_MS: Final = 3_600_000
"""Stored calls expire this long after the job's deadline, which an execution may exceed a
little."""
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
    params = work.job.params
    tasks = [
        Task(work.job.job_id, parse_scorer(json.loads(text)), version, params["run_id"])
        for text, version in zip(
            params["serialized_scorers"], params["scorer_versions"], strict=True
        )
    ]
    judges = [task.judge for task in tasks]
    sources = scorer_source_check.of_job(work.job, judges, params["serialized_scorers"])
    stored = trace_scoring.load_traces(work.job)
    if not work.job.completed:  # otherwise an earlier call has done it, before its first trace
        links.put(creator_rights.writable_run(work.job).run_id, params["trace_ids"])
    scorers = [
        (task, scoring.new_scoring(task, work, complete, source=source, expectations=True))
        for task, source in zip(tasks, sources, strict=True)
    ]
    judgement = _Judgement(work, has_code=any(isinstance(judge, CodeScorer) for judge in judges))
    judgement.judge_traces([pair for pair in scorers if not pair[0].judge.of_sessions], stored)
    judgement.judge_sessions([pair for pair in scorers if pair[0].judge.of_sessions], stored)
    summary = work.summarize(aggregate(judgement.assessments))
    finish(work, summary)
    return {
        "run_id": params["run_id"],
        "total_traces": len(params["trace_ids"]),
        "scorer_count": len(tasks),
    }


class _Judgement:
    """Judges the traces and sessions of an evaluation, each once. Assessments that an earlier call
    of the function has written are used again; the spans of their traces are not read."""

    def __init__(self, work: JobExecution, *, has_code: bool) -> None:
        self._work = work
        self._silent: dict[CallId, bytes] = {}
        if has_code:
            self._silent = job_calls.of_job(work.job.job_id)
        self.assessments: list[tuple[Task, Assessment]] = []
        """All assessments of the evaluation, also those of earlier calls."""

    def judge_traces(self, scorers: Sequence[_Scorer], stored: Sequence[StoredTrace]) -> None:
        """Judges each trace. Raises the errors of :func:`judge_runner.trace_scoring.run`."""

        def judge(trace: StoredTrace, missing: Sequence[_Scorer]) -> None:
            self._work.check()
            subject = trace_content.read(trace)
            for task, functions in missing:
                self._write(task, trace, functions.trace(subject))
            self._work.record_done()

        unjudged = self._unjudged(scorers, [[trace] for trace in stored])
        self._work.record_done(len(stored) - len(unjudged))
        trace_scoring.run_in_parallel(lambda group: judge(group[0][0], group[1]), unjudged)

    def judge_sessions(self, scorers: Sequence[_Scorer], stored: Sequence[StoredTrace]) -> None:
        """Judges each session; its first trace gets the assessments. Raises as
        :meth:`judge_traces`."""

        def judge(session: Sequence[StoredTrace], missing: Sequence[_Scorer]) -> None:
            self._work.check()
            subjects = list(map(trace_content.read, session))
            for task, functions in missing:
                self._write(task, session[0], functions.session(subjects))

        unjudged = self._unjudged(scorers, _sessions(stored) if scorers else [])
        trace_scoring.run_in_parallel(lambda group: judge(*group), unjudged)

    def _unjudged(
        self, scorers: Sequence[_Scorer], groups: Sequence[Sequence[StoredTrace]]
    ) -> list[tuple[Sequence[StoredTrace], list[_Scorer]]]:
        """Returns the groups whose first trace lacks the assessments of some scorers, with these
        scorers."""
        unjudged = []
        for group in groups:
            trace = traces.entity(group[0])
            missing = []
            for scorer in scorers:
                existing = assessing.existing_assessments(scorer[0], trace)
                self._add(scorer[0], existing)
                if not existing and _silent_call(scorer[0], trace.trace_id) not in self._silent:
                    missing.append(scorer)
            if missing:
                unjudged.append((group, missing))
        return unjudged

    def _write(self, task: Task, trace: StoredTrace, assessments: Sequence[Assessment]) -> None:
        self._work.rights.check()  # the model may have taken minutes
        if assessments or not isinstance(task.judge, CodeScorer):
            assessing.write(trace, assessments)
        else:  # None makes no assessment; without this item a later call would judge again
            expiry = deadline(self._work.job) + _KEPT_AFTER_DEADLINE_MS
            job_calls.put(self._work.job.job_id, _silent_call(task, trace.trace_id), None, expiry)
        self._add(task, assessments)

    def _add(self, task: Task, assessments: Sequence[Assessment]) -> None:
        self.assessments.extend((task, assessment) for assessment in assessments)


def _silent_call(task: Task, trace_id: str) -> CallId:
    return CallId(f"silent:{assessing.judgement_id(task, trace_id)}", 0)


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


def finish(work: JobExecution, summary: Mapping[str, Any]) -> None:
    """Logs the aggregated metrics of an evaluation job to its run and ends the run. Repeating it
    with the same summary changes nothing. Raises the errors of
    :func:`judge_runner.creator_rights.writable_run`, and InvalidParameterValue if the run is marked
    as deleted.

    Args:
        summary: the job's stored ``metrics``, and the ``time`` at which to log them.
    """
    time, metrics = summary["time"], summary["metrics"]
    work.rights.check()
    stored_run = creator_rights.writable_run(work.job)
    points = [Metric(name, stored_value(value), time, 0) for name, value in metrics.items()]
    if points and stored_run.item.status == RUNNING:
        metric_history.write(stored_run.experiment.experiment_id, stored_run.run_id, points)
    endings.end(stored_run, "FINISHED", time, metrics=latest_of(points))


def end_failed(job: Job) -> None:
    """Ends the run of a failed job with the status FAILED."""
    job_runs.end(job, "FAILED")


def end_stopped(job: Job) -> None:
    """Ends the run of a job that will not continue, with the status KILLED if the job was
    cancelled, otherwise FAILED. Does nothing for a job that succeeded."""
    if job.status != SUCCEEDED:
        job_runs.end(job, "KILLED" if job.status == CANCELED else "FAILED")


def _sessions(stored: Sequence[StoredTrace]) -> list[list[StoredTrace]]:
    """Returns the traces of each session in chronological order. Traces without a session are left
    out."""
    groups: dict[str, list[StoredTrace]] = {}
    for trace in sorted(stored, key=lambda each: each.info.request_time):
        session = trace.document.texts("trace_metadata").get(reserved_tags.TRACE_SESSION)
        if session:
            groups.setdefault(session, []).append(trace)
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
