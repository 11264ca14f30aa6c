"""Runs the job in which one scorer assesses up to 100 traces, or one session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final, TypeVar

from judge_runner import assessing, scorer_source_check, scoring
from judge_runner.assessing import Task
from judge_runner.job_execution import JobExecution
from mlcore import errors
from mlcore.entities.evaluation.jobs import ONLINE_SCORING, Job
from mlcore.entities.traces import Assessment, Trace
from mlcore.judges import trace_content
from mlcore.judges.judge_model import Complete
from mlcore.judges.trace_content import Subject
from mlcore.limits.evaluation.scorer_parsing import parse_scorer
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace
from mlcore.responses import traces as responses

T = TypeVar("T")

PARALLEL_CALLS: Final = 8
"""The most traces that a job assesses in parallel."""


def run(work: JobExecution, complete: Complete) -> dict[str, Any]:
    """Executes a job in which a scorer assesses traces. Returns the job's result: by trace id the
    assessments and failures; those of a session by the id of its first trace.

    Raises:
        InvalidParameterValue: the scorer is invalid, its code differs from the registered code, or
            the traces are not one session.
        FeatureDisabled: the scorer is code, and this system cannot confine a process for it.
        ResourceDoesNotExist: a trace is missing.
        TemporarilyUnavailable, RequestLimitExceeded: the table cannot be reached or is busy.
        PermissionDenied: the job's creator lost a right.
        JobStopped, OutOfTime: see :mod:`judge_runner.job_execution`.
    """
    params = work.job.params
    text = params["serialized_scorer"]
    task = Task(
        params.get("task") or work.job.job_id,
        parse_scorer(json.loads(text)),
        params["scorer_version"],
    )
    stored = load_traces(work.job)
    write = bool(params["log_assessments"])
    (source,) = scorer_source_check.of_job(work.job, [task.judge], [text])
    functions = scoring.new_scoring(task, work, complete, source=source, expectations=False)
    if task.judge.of_sessions:
        work.check()
        session = [trace_content.read(each) for each in stored]
        check_session(session)
        first = trace_content.chronological(session)[0]
        made = _existing(work.job, task, first.trace) or functions.session(session)
        by_id = {each.trace_id: each for each in stored}
        _record(work, by_id[first.trace_id], made, write)
    else:

        def assess(trace: StoredTrace) -> None:
            work.check()
            subject = trace_content.read(trace)
            made = _existing(work.job, task, subject.trace) or functions.trace(subject)
            _record(work, trace, made, write)

        run_in_parallel(assess, [each for each in stored if each.trace_id not in work.results])
    return dict(work.results)


def _existing(job: Job, task: Task, trace: Trace) -> list[Assessment]:
    """Returns the assessments of a trace that the task has made already. For online scoring reads
    the trace again: an interrupted sweep makes further jobs with the same task, which may run at
    the same time."""
    if job.name == ONLINE_SCORING:
        current = traces.find(trace.trace_id, job.workspace)
        trace = trace if current is None else traces.entity(current)
    return assessing.existing_assessments(task, trace)


def load_traces(job: Job) -> list[StoredTrace]:
    """Returns the traces of a job. Raises ResourceDoesNotExist if some are missing. A trace of
    another experiment counts as missing: the request that created the job could not check the
    rights on traces that did not exist then."""
    trace_ids = job.params["trace_ids"]
    own = {
        trace.trace_id: trace
        for trace in traces.find_many(trace_ids, job.workspace)
        if trace is not None and trace.experiment.experiment_id == job.params["experiment_id"]
    }
    missing = [each for each in trace_ids if each not in own]
    if missing:
        raise errors.ResourceDoesNotExist(f"Traces not found: {missing}")
    return [own[trace_id] for trace_id in trace_ids]


def check_session(session: Sequence[Subject]) -> None:
    """Checks that all traces belong to one session, and that each has one. Raises
    InvalidParameterValue otherwise."""
    if any(subject.session is None for subject in session):
        raise errors.InvalidParameterValue(
            "Session-level scorer requires traces with session metadata."
        )
    if len({subject.session for subject in session}) != 1:
        raise errors.InvalidParameterValue(
            "All traces in 'session' must belong to the same session."
        )


def run_in_parallel(call: Callable[[T], None], subjects: Iterable[T]) -> None:
    """Calls the function for each trace or session, in parallel. If a call fails, waits for the
    running ones, cancels the others, and raises the error."""
    with ThreadPoolExecutor(PARALLEL_CALLS, thread_name_prefix="judge") as pool:
        calls = [pool.submit(call, each) for each in subjects]
        try:
            for done in as_completed(calls):
                done.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _record(
    work: JobExecution, trace: StoredTrace, made: Sequence[Assessment], write: bool
) -> None:
    if write and made:
        work.rights.check()  # the model may have taken minutes
        assessing.write(trace, made)
    work.record_result(
        trace.trace_id,
        {
            "assessments": [responses.assessment(each) for each in made],
            "failures": [
                {
                    "error_code": each.error["error_code"],
                    "error_message": each.error["error_message"],
                }
                for each in made
                if each.error is not None
            ],
        },
    )
