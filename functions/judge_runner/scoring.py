"""How a job's scorer assesses: a judge asks its model, a rule rates here, a code scorer runs in a
cage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from judge_runner import assessing, code_scoring
from judge_runner.assessing import Task
from mlcore import errors
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.jobs import Job
from mlcore.entities.traces import Assessment
from mlcore.judges.chat import Complete, JudgeModel, endpoint_of
from mlcore.judges.content import Subject
from mlcore.limits.evaluation.code_scorers import parse_scorer
from mlcore.limits.evaluation.scorers import check_payload
from mlcore.repos.evaluation import scorers
from mlcore.repos.experiments import experiments


class Scoring(NamedTuple):
    """The two ways in which a scorer assesses. Both return assessments and may raise the errors of
    :mod:`judge_runner.code_scoring`."""

    trace: Callable[[Subject], list[Assessment]]
    session: Callable[[Sequence[Subject]], list[Assessment]]


def new_scoring(task: Task, job: Job, complete: Complete, *, expectations: bool) -> Scoring:
    """Returns how a task's scorer assesses. Rules rate traces, not sessions. A judge's model is
    called as the user who submitted the job.

    Args:
        complete: calls the model of a judge.
        expectations: whether a code scorer gets what was expected of a trace.

    Raises:
        InvalidParameterValue: a judge's model is not an endpoint of this server's gateway.
    """
    scorer = task.judge
    if isinstance(scorer, CodeScorer):
        return Scoring(
            lambda subject: code_scoring.assess_trace(
                task, scorer, subject, expectations=expectations
            ),
            lambda session: code_scoring.assess_session(task, scorer, session),
        )
    if not scorer.asks_model:
        return Scoring(
            lambda subject: assessing.assess_by_rule(task, scorer, subject),
            lambda session: assessing.assess_by_rule(task, scorer, session[0]),
        )
    chat = JudgeModel(job.workspace, endpoint_of(scorer), job.creator, complete)
    return Scoring(
        lambda subject: assessing.assess_trace(task, scorer, subject, chat),
        lambda session: assessing.assess_session(task, scorer, session, chat),
    )


def check_source(task: Task, job: Job, registered_name: str) -> None:
    """Checks that a registered code scorer still has the source that the job was submitted with.
    A deleted version's number is given again, so another source may have it now.

    Raises:
        InvalidParameterValue: the version is missing, or has another source.
    """
    if task.version is None or not isinstance(task.judge, CodeScorer):
        return
    known = experiments.find_existing([job.params["experiment_id"]], job.workspace)
    version = scorers.find(known[0], registered_name, task.version) if known else None
    if version is not None:
        registered = parse_scorer(check_payload(version.serialized_scorer))
        if registered.digest == task.judge.digest:
            return
    raise errors.InvalidParameterValue(
        f"Version {task.version} of scorer '{registered_name}' was deleted or replaced after this "
        "job was submitted, so its source was not run."
    )
