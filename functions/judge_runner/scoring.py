"""Chooses how a job's scorer makes assessments: a judge asks its model, a rule is computed in this
process, a code scorer runs in a cage (a process of its own without rights)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from judge_runner import assessing
from judge_runner.assessing import Task
from judge_runner.code_scoring import CodeScoring
from judge_runner.job_execution import JobExecution
from judge_runner.scorer_source_check import SourceCheck
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.traces import Assessment
from mlcore.judges.judge_model import Complete, JudgeModel, endpoint_of
from mlcore.judges.trace_content import Subject


class Scoring(NamedTuple):
    """The functions by which a scorer assesses a trace or a session of traces. All return
    assessments and may raise the errors of :mod:`judge_runner.code_scoring`."""

    trace: Callable[[Subject], list[Assessment]]
    session: Callable[[Sequence[Subject]], list[Assessment]]
    priced: Callable[[Subject], tuple[list[Assessment], float]] | None = None
    """Like ``trace``, but also returns the cost in US dollars. None unless the scorer is code."""


def new_scoring(
    task: Task,
    work: JobExecution,
    complete: Complete,
    *,
    source: SourceCheck | None,
    expectations: bool,
) -> Scoring:
    """Returns the functions by which a task's scorer assesses traces and sessions. A scorer that
    asks no model and is no code (a rule) rates only the first trace of a session. A judge's model
    is called in the name of the user who submitted the job.

    Args:
        complete: calls the model of a judge.
        source: checks that a registered scorer's source code is still that of the job; None if it
            is not code, or not registered.
        expectations: whether a code scorer gets the expectations of a trace.

    Raises:
        InvalidParameterValue: a judge's model is not an endpoint of this server's gateway.
    """
    scorer = task.judge
    if isinstance(scorer, CodeScorer):
        code = CodeScoring(task, scorer, work, source)
        return Scoring(
            lambda subject: code.assess_trace(subject, expectations=expectations),
            code.assess_session,
            lambda subject: code.judge_trace(subject, expectations=expectations),
        )
    if not scorer.asks_model:
        return Scoring(
            lambda subject: assessing.assess_by_rule(task, scorer, subject),
            lambda session: assessing.assess_by_rule(task, scorer, session[0]),
        )
    chat = JudgeModel(work.job.workspace, endpoint_of(scorer), work.job.creator, complete)
    return Scoring(
        lambda subject: assessing.assess_trace(task, scorer, subject, chat),
        lambda session: assessing.assess_session(task, scorer, session, chat),
    )
