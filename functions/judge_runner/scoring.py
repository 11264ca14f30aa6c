"""The job of letting one judge judge traces, a hundred at most, or one conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final

from judge_runner import judging
from judge_runner.judging import Task
from judge_runner.work import Work
from mlcore import errors
from mlcore.entities.evaluation.jobs import Job
from mlcore.entities.evaluation.judges import Judge
from mlcore.entities.traces import Assessment
from mlcore.judges import content
from mlcore.judges.chat import Chat, Complete, endpoint_of
from mlcore.judges.content import Subject
from mlcore.limits.evaluation.judges import judge
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace
from mlcore.responses import traces as responses

AT_ONCE: Final = 8
"""Models that are asked side by side."""


def run(work: Work, complete: Complete) -> dict[str, Any]:
    """What the job answers: of each trace its assessments and what failed.

    Raises:
        InvalidParameterValue, ResourceDoesNotExist: the judge or a trace is none.
        Stopped, OutOfTime: see :mod:`judge_runner.work`.
    """
    params, workspace = work.job.params, work.job.workspace
    task = Task(
        params.get("task") or work.job.job_id,
        judge(json.loads(params["serialized_scorer"])),
        params["scorer_version"],
    )
    stored = present(params["trace_ids"], workspace)
    write = bool(params["log_assessments"])
    chat = chat_of(task.judge, work.job, complete)
    if task.judge.of_sessions:
        work.check()
        session = [content.read(each) for each in stored]
        check_session(session)
        first = content.in_time(session)[0]
        made = judging.known(task, first) or judging.of_session(task, session, chat)
        by_id = {each.trace_id: each for each in stored}
        _keep(work, by_id[first.trace_id], made, write)
    else:

        def one(trace: StoredTrace) -> None:
            work.check()
            subject = content.read(trace)
            made = judging.known(task, subject) or judging.of_trace(task, subject, chat)
            _keep(work, trace, made, write)

        side_by_side(one, [each for each in stored if each.trace_id not in work.results])
    return dict(work.results)


def chat_of(asking: Judge, job: Job, complete: Complete) -> Chat:
    """The model of a judge, asked in the name of whoever asked for the job. Raises
    InvalidParameterValue: it is none that this server can ask."""
    return Chat(job.workspace, endpoint_of(asking), job.creator, complete)


def present(trace_ids: Sequence[str], workspace: str) -> list[StoredTrace]:
    """Raises ResourceDoesNotExist: some are missing."""
    found = traces.find_many(trace_ids, workspace)
    missing = [each for each, trace in zip(trace_ids, found, strict=True) if trace is None]
    if missing:
        raise errors.ResourceDoesNotExist(f"Traces not found: {missing}")
    return [trace for trace in found if trace is not None]


def check_session(session: Sequence[Subject]) -> None:
    """Raises InvalidParameterValue: the traces are of no conversation, or of several."""
    if any(subject.session is None for subject in session):
        raise errors.InvalidParameterValue(
            "Session-level scorer requires traces with session metadata."
        )
    if len({subject.session for subject in session}) != 1:
        raise errors.InvalidParameterValue(
            "All traces in 'session' must belong to the same session."
        )


def side_by_side(call: Callable[[StoredTrace], None], stored: Iterable[StoredTrace]) -> None:
    """Raises what the first call raised that failed; what is in work then is ended before."""
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="judge") as pool:
        calls = [pool.submit(call, each) for each in stored]
        try:
            for done in as_completed(calls):
                done.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _keep(work: Work, trace: StoredTrace, made: Sequence[Assessment], write: bool) -> None:
    if write and made:
        judging.write(trace, made)
    work.done(
        trace.trace_id,
        {
            "assessments": [responses.assessment(one) for one in made],
            "failures": [
                {
                    "error_code": one.error["error_code"],
                    "error_message": one.error["error_message"],
                }
                for one in made
                if one.error is not None
            ],
        },
    )
