"""Runs scorers that are code on a trace or a session, in a cage, and converts their feedback to
assessments."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from judge_runner import assessing
from judge_runner.assessing import Task
from mlcore import errors
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.traces import Assessment
from mlcore.environment import in_lambda
from mlcore.judges import content
from mlcore.judges.content import Subject
from mlcore.observability import logger
from mlcore.responses import traces as responses
from mlcore.scorer_cage import cage, remote_cage
from mlcore.scorer_cage.answers import ScorerFeedback
from mlcore.scorer_cage.cage import CageLimits, Judgement

PACKAGES: Final = "MLFLOW_SCORER_PACKAGES"
"""Environment: installed packages that scorers may import, separated by commas."""
WALL_MS: Final = "scorer_wall_ms"
CPU_MS: Final = "scorer_cpu_ms"
"""Metadata of the assessments: what the judgement took, in milliseconds."""
_processors = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))
"""Each cage computes; more of them than processors would only time out earlier."""


def assess_trace(
    task: Task, scorer: CodeScorer, subject: Subject, *, expectations: bool
) -> list[Assessment]:
    """Returns the scorer's assessments of a trace; a single assessment with the error if the scorer
    fails.

    Args:
        expectations: whether the scorer gets what was expected of the trace. As on MLflow's server
            it gets that in an evaluation, and otherwise None.

    Raises:
        FeatureDisabled: this system offers no cage, so the scorer cannot run here.
    """
    call = {
        "inputs": content.inputs(subject),
        "outputs": content.outputs(subject),
        "expectations": content.all_expectations(subject) if expectations else None,
        "trace": _trace(subject),
    }
    return _assess(task, scorer, subject, call)


def assess_session(task: Task, scorer: CodeScorer, session: Sequence[Subject]) -> list[Assessment]:
    """Returns the scorer's assessments of a session. They belong to its first trace. Raises
    FeatureDisabled."""
    ordered = content.chronological(session)
    call = {"session": list(map(_trace, ordered))}
    return _assess(assessing.of_session(task, ordered[0]), scorer, ordered[0], call)


def _assess(
    task: Task, scorer: CodeScorer, subject: Subject, call: Mapping[str, Any]
) -> list[Assessment]:
    judgement = _judge(scorer, call)
    took = {WALL_MS: str(judgement.wall_ms), CPU_MS: str(judgement.cpu_ms)}
    logger.info(
        "a scorer's code has run",
        extra={"scorer": scorer.name, "trace_id": subject.trace_id, **took},
    )
    if judgement.failure is not None:
        failed = assessing.failure(task, subject, errors.InvalidParameterValue(judgement.failure))
        return [failed._replace(metadata={**(failed.metadata or {}), **took})]
    measured = task._replace(extra={**task.extra, **took})
    return [
        _assessment(measured, subject, number, feedback)
        for number, feedback in enumerate(judgement.feedback)
    ]


def _judge(scorer: CodeScorer, call: Mapping[str, Any]) -> Judgement:
    seconds = min(scorer.timeout or cage.MAX_SECONDS, cage.MAX_SECONDS)
    try:
        if in_lambda():  # this function has rights, so it never runs a scorer's code itself
            return remote_cage.judge(scorer._asdict(), call, seconds)
        packages = tuple(filter(None, map(str.strip, os.environ.get(PACKAGES, "").split(","))))
        with _processors:
            return cage.judge(scorer._asdict(), call, CageLimits(seconds, packages=packages))
    except cage.CageUnavailable as missing:
        raise errors.FeatureDisabled(str(missing)) from missing


def _assessment(task: Task, subject: Subject, number: int, feedback: ScorerFeedback) -> Assessment:
    made = assessing.new_assessment(task, subject, number, feedback.value, feedback.metadata)
    return made._replace(
        name=feedback.name,
        source_id=feedback.source_id,
        rationale=feedback.rationale,
        error=None if feedback.error is None else dict(feedback.error),
    )


def _trace(subject: Subject) -> dict[str, Any]:
    return {"info": responses.trace_info(subject.trace), "spans": subject.spans}
