"""How a job's scorer assesses: a judge asks its model, a rule rates here, a code scorer runs in a
cage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from judge_runner import assessing
from judge_runner.assessing import Task
from judge_runner.code_scoring import CodeScoring
from judge_runner.job_execution import JobExecution
from judge_runner.sealed_sources import SourceCheck
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.traces import Assessment
from mlcore.judges.chat import Complete, JudgeModel, endpoint_of
from mlcore.judges.content import Subject


class Scoring(NamedTuple):
    """The ways in which a scorer assesses. All return assessments and may raise the errors of
    :mod:`judge_runner.code_scoring`."""

    trace: Callable[[Subject], list[Assessment]]
    session: Callable[[Sequence[Subject]], list[Assessment]]
    priced: Callable[[Subject], tuple[list[Assessment], float]] | None = None
    """As ``trace``, of code alone: returns also what the judgement cost, in US dollars."""


def new_scoring(
    task: Task,
    work: JobExecution,
    complete: Complete,
    *,
    source: SourceCheck | None,
    expectations: bool,
) -> Scoring:
    """Returns how a task's scorer assesses. Rules rate traces, not sessions. A judge's model is
    called as the user who submitted the job.

    Args:
        complete: calls the model of a judge.
        source: checks that a registered scorer that is code still has the source of the job.
        expectations: whether a code scorer gets what was expected of a trace.

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
