"""Scorers of tests, and how a test runs them."""

from __future__ import annotations

from typing import Any

from mlcore.scorer_cage.cage import CageLimits, Judgement, judge
from tests.cage.escapes import PACKAGES

LIMITS = CageLimits(seconds=20, packages=PACKAGES)


def run(body: str, limits: CageLimits = LIMITS, signature: str = "()", **call: Any) -> Judgement:
    """Runs a scorer named ``quality`` with this body."""
    scorer = {
        "name": "quality",
        "call_source": body.strip("\n"),
        "call_signature": signature,
        "original_func_name": "quality",
    }
    return judge(scorer, call, limits)


def error(made: Judgement) -> str:
    """Returns the message of the error that a scorer's only feedback has."""
    (feedback,) = made.feedback
    assert feedback.error is not None, feedback
    assert feedback.error["error_code"] == "SCORER_ERROR"
    return feedback.error["error_message"] or ""
