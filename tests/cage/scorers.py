"""Scorers of tests, and how a test runs them."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.scorer_cage.cage import CageLimits, Judgement, judge
from tests.cage.escapes import PACKAGES

LIMITS = CageLimits(seconds=20, packages=PACKAGES)


def run(body: str, limits: CageLimits = LIMITS, signature: str = "()", **call: Any) -> Judgement:
    """Runs a scorer named ``quality`` with this body."""
    return judge(as_code("quality", body.strip("\n"), signature), call, limits)


def as_code(name: str, source: str, signature: str) -> dict[str, Any]:
    """Returns what the cage gets of a scorer with this source."""
    scorer = CodeScorer(name, source, signature, name, 0, (), False, "")
    return scorer.in_the_cage()


def error(made: Judgement) -> str:
    """Returns the message of the error that a scorer's only feedback has."""
    (feedback,) = made.feedback
    assert feedback.error is not None, feedback
    assert feedback.error["error_code"] == "SCORER_ERROR"
    return feedback.error["error_message"] or ""
