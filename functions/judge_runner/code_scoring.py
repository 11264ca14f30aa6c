"""Runs scorers that are code on a trace or a session of traces, in a cage (a process of its own
without rights), and converts their feedback to assessments."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from judge_runner import assessing
from judge_runner.assessing import Task
from judge_runner.job_execution import (
    JobExecution,
    JobThrottled,
    OutOfTime,
    ServerStopping,
)
from judge_runner.scorer_source_check import SourceCheck
from mlcore import errors
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.traces import Assessment
from mlcore.environment import in_lambda
from mlcore.judges import trace_content
from mlcore.judges.trace_content import Subject
from mlcore.observability import logger
from mlcore.responses import traces as responses
from mlcore.scorer_cage import cage, remote_cage
from mlcore.scorer_cage.answers import ScorerFeedback
from mlcore.scorer_cage.cage import CageLimits, Judgement

WALL_MS: Final = "scorer_wall_ms"
CPU_MS: Final = "scorer_cpu_ms"
"""Key in the metadata of the assessments: the processor time of the judgement, in milliseconds."""
COST_USD: Final = "scorer_cost_usd"
"""Key in the metadata of a judgement's first assessment: what the judgement cost in AWS, in US
dollars."""
_MEASURED: Final = (WALL_MS, CPU_MS, COST_USD)
"""Metadata that only this server sets: a scorer must not state its own time and cost."""
RESERVED_SECONDS: Final = 20.0
"""Seconds of a call of the runner that are not available to a scorer: for the wait for the answer
(:data:`remote_cage.EXTRA_SECONDS`, and the pauses before a call), for storing results and for
pausing the job."""
_LEAST_SECONDS: Final = 2.0
"""A judgement that would have less time than this is not begun, unless the scorer's own limit is
shorter."""
_processors = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))
"""Limits the cages that run at the same time on a laptop to one per processor (at least two): with
more, each would be slower and might time out."""


class CodeScoring:
    """Runs one code scorer on the traces or sessions of a job's task, and makes assessments of its
    results. The methods may be called from several threads."""

    def __init__(
        self, task: Task, scorer: CodeScorer, work: JobExecution, source: SourceCheck | None
    ) -> None:
        """
        Args:
            source: checks the source of a registered scorer; None for a scorer whose source was in
                the request.
        """
        self._task = task
        self._scorer = scorer
        self._work = work
        self._source = source

    def assess_trace(self, subject: Subject, *, expectations: bool) -> list[Assessment]:
        """Returns the scorer's assessments of a trace; a single assessment with the error if the
        scorer fails.

        Args:
            expectations: whether the scorer gets the trace's expectations. As on MLflow's server,
                it gets them in an evaluation, and otherwise None.

        Raises:
            FeatureDisabled: this system cannot confine a process, so the scorer is not run here.
            InvalidParameterValue: the source differs from the registered one.
            TemporarilyUnavailable: the function of code scorers cannot be called.
            OutOfTime, JobStopped, PermissionDenied: see :meth:`JobExecution.check`. The trace is
                judged by another call of the runner.
            JobThrottled: Lambda has no capacity for another function of code scorers now.
            ServerStopping: a laptop's server stops.
        """
        return self.judge_trace(subject, expectations=expectations)[0]

    def judge_trace(
        self, subject: Subject, *, expectations: bool
    ) -> tuple[list[Assessment], float]:
        """Like :meth:`assess_trace`, but also returns the cost of the judgement in US dollars. A
        scorer that returns None makes no assessment, but its run has a cost."""
        call = {
            "inputs": trace_content.inputs(subject),
            "outputs": trace_content.outputs(subject),
            "expectations": trace_content.all_expectations(subject) if expectations else None,
            "trace": _trace(subject),
        }
        return self._assess(self._task, subject, call)

    def assess_session(self, session: Sequence[Subject]) -> list[Assessment]:
        """Returns the scorer's assessments of a session of traces. They belong to its first trace.
        Raises the errors of :meth:`assess_trace`."""
        ordered = trace_content.chronological(session)
        call = {"session": list(map(_trace, ordered))}
        return self._assess(assessing.of_session(self._task, ordered[0]), ordered[0], call)[0]

    def _assess(
        self, task: Task, subject: Subject, call: Mapping[str, Any]
    ) -> tuple[list[Assessment], float]:
        judgement = self._judge(call)
        took = {
            WALL_MS: str(judgement.wall_ms),
            CPU_MS: str(judgement.cpu_ms),
        }
        price = {COST_USD: f"{judgement.dollars:.9f}" if judgement.dollars else "0"}
        logger.info(
            "a scorer's code has run",
            extra={"scorer": self._scorer.name, "trace_id": subject.trace_id, **took, **price},
        )
        if judgement.failure is not None:
            failed = assessing.failure(
                task, subject, errors.InvalidParameterValue(judgement.failure)
            )
            made = [failed._replace(metadata={**(failed.metadata or {}), **took, **price})]
            return made, judgement.dollars
        first = task._replace(extra={**task.extra, **took, **price})
        others = task._replace(
            extra={**task.extra, **took}
        )  # so a sum over the assessments counts the cost once
        made = [
            _assessment(others if number else first, subject, number, feedback)
            for number, feedback in enumerate(judgement.feedback)
        ]
        return made, judgement.dollars

    def _judge(self, call: Mapping[str, Any]) -> Judgement:
        """Runs the scorer, with its own time limit. Raises OutOfTime without running it if this
        call of the runner has less time left, but another call, at its beginning, would have
        enough. If no call has enough, runs the scorer in the remaining time, and raises OutOfTime
        if it does not finish."""
        may_take = self._scorer.seconds()
        with _a_processor():
            self._work.check()
            if self._source is not None:
                self._source.check()
            seconds = min(may_take, self._work.remaining_seconds() - RESERVED_SECONDS)
            another_has_more = self._work.began_with_seconds - RESERVED_SECONDS >= may_take
            least = may_take if another_has_more else min(may_take, _LEAST_SECONDS)
            if seconds < least:
                raise OutOfTime
            self._work.hold(seconds)
            started = time.monotonic()
            try:
                judgement = _run(self._scorer, call, seconds)
            except remote_cage.AnswerLost as lost:
                self._work.add_cost(lost.dollars)
                raise
            except remote_cage.Throttled as passing:
                raise JobThrottled from passing  # no failure: another call continues the job
            except cage.ServerStops as passing:
                raise ServerStopping from passing
            took = time.monotonic() - started
        self._work.add_cost(judgement.dollars)
        if judgement.failure is not None and seconds < may_take and took >= seconds:
            raise OutOfTime
        self._work.record_judgement()
        return judgement


@contextmanager
def _a_processor() -> Iterator[None]:
    """Waits until a processor is free for a cage. In AWS each cage has its own."""
    if in_lambda():
        yield
        return
    with _processors:
        yield


def _run(scorer: CodeScorer, call: Mapping[str, Any], seconds: float) -> Judgement:
    try:
        if in_lambda():  # this function has rights, so it never runs a scorer's code itself
            return remote_cage.judge(scorer.in_the_cage(), call, seconds)
        limits = CageLimits(seconds, packages=cage.allowed_packages())
        return cage.judge(scorer.in_the_cage(), call, limits)
    except cage.CageUnavailable as missing:
        raise errors.FeatureDisabled(str(missing)) from missing


def _assessment(task: Task, subject: Subject, number: int, feedback: ScorerFeedback) -> Assessment:
    metadata = {name: text for name, text in feedback.metadata.items() if name not in _MEASURED}
    made = assessing.new_assessment(task, subject, number, feedback.value, metadata)
    return made._replace(
        name=feedback.name,
        source_id=feedback.source_id,
        rationale=feedback.rationale,
        error=None if feedback.error is None else dict(feedback.error),
    )


def _trace(subject: Subject) -> dict[str, Any]:
    return {"info": responses.trace_info(subject.trace), "spans": subject.spans}
