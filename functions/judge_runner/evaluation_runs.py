"""The job of evaluating traces with several judges: their assessments, and in a run what they come
to together."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from judge_runner import judging, scoring
from judge_runner.judging import Task
from judge_runner.work import Work
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
from mlcore.limits.evaluation.judges import judge
from mlcore.models.runs import Run as RunItem
from mlcore.repos.runs import history, runs
from mlcore.repos.runs import writes as run_writes
from mlcore.repos.runs.points import latest_text
from mlcore.repos.runs.runs import StoredRun
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


def run(work: Work, complete: Complete) -> dict[str, Any]:
    """What the job answers. Raises as :func:`judge_runner.scoring.run`."""
    params, workspace = work.job.params, work.job.workspace
    tasks = [
        Task(work.job.job_id, judge(json.loads(text)), version, params["run_id"])
        for text, version in zip(
            params["serialized_scorers"], params["scorer_versions"], strict=True
        )
    ]
    links.put(params["run_id"], params["trace_ids"])
    stored = scoring.present(params["trace_ids"], workspace)
    made: list[tuple[Task, Assessment]] = []
    chats = [scoring.chat_of(task.judge, work.job, complete) for task in tasks]
    subjects: dict[str, Subject] = {}
    by_id = {each.trace_id: each for each in stored}

    def one(trace: StoredTrace) -> None:
        work.check()
        subject = content.read(trace)
        subjects[trace.trace_id] = subject
        for task, chat in zip(tasks, chats, strict=True):
            if not task.judge.of_sessions:
                found = judging.known(task, subject) or judging.of_trace(task, subject, chat)
                judging.write(trace, found)
                made.extend((task, each) for each in found)
        work.done(trace.trace_id, {})

    scoring.side_by_side(one, stored)
    for task, chat in zip(tasks, chats, strict=True):
        if task.judge.of_sessions:
            for session in _sessions(list(subjects.values())):
                work.check()
                first = content.in_time(session)[0]
                found = judging.known(task, first) or judging.of_session(task, session, chat)
                judging.write(by_id[first.trace_id], found)
                made += [(task, each) for each in found]
    finish(params["run_id"], workspace, work.summarize(aggregated(made)))
    return {
        "run_id": params["run_id"],
        "total_traces": len(params["trace_ids"]),
        "scorer_count": len(tasks),
    }


def aggregated(made: Sequence[tuple[Task, Assessment]]) -> dict[str, float]:
    """Metrics by name, ``judge/mean``, of what can be counted: numbers, and yes or no."""
    values: dict[str, list[float]] = {}
    asked: dict[str, Sequence[str]] = {}
    for task, one in made:
        number = _number(one)
        if number is not None:
            values.setdefault(one.name, []).append(number)
            is_own = one.name == task.judge.name
            asked[one.name] = task.judge.aggregations if is_own else ("mean",)
    return {
        f"{name}/{aggregation}": float(_AGGREGATES[aggregation](found))
        for name, found in values.items()
        for aggregation in asked[name]
    }


def finish(run_id: str, workspace: str, summary: Mapping[str, Any]) -> None:
    """Logs the aggregated metrics and ends the run. Repeating it with the same summary (see
    :class:`Job`) changes nothing."""
    time, metrics = summary["time"], summary["metrics"]
    found = runs.load(run_id, workspace)
    points = [Metric(name, stored_value(value), time, 0) for name, value in metrics.items()]
    if points and found.item.status == RUNNING:
        history.write(found.experiment.experiment_id, run_id, points)
    _end(found, "FINISHED", time, points)


def failed(job: Job) -> None:
    """Ends the run of a job that has failed."""
    _end_of(job, "FAILED")


def stopped(job: Job) -> None:
    """Ends the run of a job that nobody does any more."""
    if job.status != SUCCEEDED:
        _end_of(job, "KILLED" if job.status == CANCELED else "FAILED")


def _end_of(job: Job, status: str) -> None:
    try:
        found = runs.load(job.params["run_id"], job.workspace)
        _end(found, status, ids.now_ms(), ())
    except (errors.ResourceDoesNotExist, errors.InvalidParameterValue):
        return  # it was deleted


def _end(run: StoredRun, status: str, now: int, points: Sequence[Metric]) -> None:
    """One that has ended stays as it is."""
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
    for subject in content.in_time(subjects):
        if subject.session:
            groups.setdefault(subject.session, []).append(subject)
    return list(groups.values())


def _number(one: Assessment) -> float | None:
    if one.error is not None:
        return None
    if isinstance(one.value, bool | int | float):
        return float(one.value)
    word = one.value.lower() if isinstance(one.value, str) else ""
    return float(word == "yes") if word in ("yes", "no") else None


def _percentile(values: Sequence[float], share: float) -> float:
    """Between the two values that are nearest, as NumPy has it."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
