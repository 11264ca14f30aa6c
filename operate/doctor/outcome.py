"""The outcomes of the steps of ``doctor``'s checkup of a server: a table, and JSON for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

OK: Final = "ok"
SLOW: Final = "slow"
WRONG: Final = "WRONG"
LEFT_OUT: Final = "left out"

_SIGNATURES: Final = re.compile(
    r"((?:X-Amz-(?:Signature|Credential|Security-Token)|Signature|AWSAccessKeyId)=)[^&\s\"']+"
)
_ACCESS_KEYS: Final = re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")
_HIDDEN: Final = "***"
_SHORTEST: Final = 4
"""The fewest characters of a secret that is hidden: a shorter one could occur in ordinary text."""


class Wrong(Exception):
    """Raised by a step of a server's checkup that found a fault; the message describes it."""


class LeftOut(Exception):
    """Raised by a step of a checkup that cannot run here; the message says why."""


class StepOutcome(NamedTuple):
    """The result of one step of the checkup that ``doctor`` makes of a server."""

    step: str
    status: str
    seconds: float
    budget: float
    """Seconds that the step may take."""
    detail: str

    def as_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "budget_seconds": self.budget,
            "detail": self.detail,
        }


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Returns the text with a placeholder in place of these secrets (unless very short), of
    signatures in URLs and of ids of access keys."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _HIDDEN)
    return _ACCESS_KEYS.sub(_HIDDEN, _SIGNATURES.sub(rf"\1{_HIDDEN}", text))


def row(outcome: StepOutcome, width: int) -> str:
    """Returns the outcome of one step of ``doctor``'s checkup as one line of the table that it
    prints, with the step's name padded to ``width``."""
    detail = " ".join(outcome.detail.split())
    times = f"{outcome.seconds:7.2f} of {outcome.budget:5.1f} s"
    return f"{outcome.step:<{width}}  {outcome.status:<8}  {times}  {detail}".rstrip()


def summary(outcomes: Sequence[StepOutcome]) -> str:
    counts = {
        status: sum(outcome.status == status for outcome in outcomes)
        for status in (OK, SLOW, WRONG, LEFT_OUT)
    }
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count)
