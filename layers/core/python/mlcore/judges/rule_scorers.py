"""Rates texts by those built-in scorers of MLflow that need no model: ``RegexMatch``,
``PIIDetection`` and ``ResponseLength``.

Rules and messages are those of MLflow (``mlflow.genai.scorers.builtin_scorers``). The search for an
expression has a time limit, because anybody may have written the expression. In a guardrail, the
rules also rate the texts of a request, not only those of an answer.
"""

from __future__ import annotations

import re
from typing import Any, Final

from mlcore.entities.evaluation.judges import (
    LENGTH_RULE,
    PII_KINDS,
    PII_RULE,
    REGEX_RULE,
    Judge,
)
from mlcore.errors import InvalidParameterValue
from mlcore.judges.verdicts import Verdict
from mlcore.limits.evaluation.rule_scorers import MAX_REPETITIONS
from mlcore.process_cache import ProcessCache
from mlcore.search import rlike

_EXPRESSIONS: Final = ProcessCache[str, Any]("compiled rules", weigh=lambda _: _EXPRESSION_BYTES)
_EXPRESSION_BYTES: Final = 500_000
"""Estimated size of a compiled expression."""
SECONDS: Final = 0.5
"""Time limit for searching a text by an expression."""
_PERSONAL: Final = {
    # The run of characters before the @ is entered at its beginning only, so the time stays linear.
    "email": r"(?<![a-zA-Z0-9._%+-])[a-zA-Z0-9._%+-]++@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}",
    "phone": r"(?:\+?1[-.\s]?)?\(?\d{3}\)?[-.\s]?\d{3}[-.\s]?\d{4}|\+[1-9]\d{1,14}",
    "ssn": r"\b\d{3}-\d{2}-\d{4}\b",
    "credit_card": r"\b(?:(?:4\d{3}|5[1-5]\d{2}|6(?:011|5\d{2}))(?:[-\s]?\d{4}){3}"
    r"|3[47]\d{2}[-\s]?\d{6}[-\s]?\d{5})\b",
    "ip_address": r"\b(?:(?:25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(?:25[0-5]|2[0-4]\d|[01]?\d\d?)\b",
}
"""An expression for each kind of personal data."""


def verdict(judge: Judge, text: str | None) -> Verdict:
    """Returns the rating of a trace's output (``text``) by a rule, a judge that asks no model, with
    its rationale.

    Args:
        text: None if the trace has no output; the rating is then ``no``.

    Raises:
        InvalidParameterValue: the search for a regular expression takes too long.
    """
    if text is None:
        return _rated("no", "No outputs provided to evaluate.")
    return _VERDICTS[judge.builtin](judge.settings, text)


def _by_expression(settings: Any, text: str) -> Verdict:
    pattern: str = settings["pattern"]
    expression = _compiled(f"(?i){pattern}" if settings.get("case_insensitive") else pattern)
    is_whole = settings.get("match_type") == "fullmatch"
    search = expression.fullmatch if is_whole else expression.search
    try:
        matches = search(text, timeout=SECONDS) is not None
    except (TimeoutError, MemoryError):
        raise InvalidParameterValue(
            f"The search for the regular expression {pattern!r} took more than {SECONDS} s."
        ) from None
    verb = "matches" if matches else "does not match"
    return _rated("yes" if matches else "no", f"Output {verb} pattern {pattern!r}")


def _compiled(pattern: str) -> Any:
    expression = _EXPRESSIONS.get(pattern)
    if expression is None:
        expression = rlike.compiled(pattern, MAX_REPETITIONS)
        _EXPRESSIONS.put(pattern, expression)
    return expression


def _by_personal_data(settings: Any, text: str) -> Verdict:
    wanted = settings.get("pii_types")
    kinds = PII_KINDS if wanted is None else wanted
    detected = [kind for kind in kinds if re.search(_PERSONAL[kind], text)]
    if detected:
        return _rated("no", f"Detected PII: {', '.join(detected)}")
    return _rated("yes", "No PII detected")


def _by_length(settings: Any, text: str) -> Verdict:
    unit = settings.get("unit", "chars")
    length = len(text.split()) if unit == "words" else len(text)
    least, most = settings.get("min_length"), settings.get("max_length")
    if least is not None and length < least:
        reason = f"({length} {unit}) is below the minimum ({least} {unit})"
        return _rated("no", f"Output length {reason}")
    if most is not None and length > most:
        reason = f"({length} {unit}) exceeds the maximum ({most} {unit})"
        return _rated("no", f"Output length {reason}")
    return _rated("yes", f"Output length ({length} {unit}) is within bounds")


_VERDICTS: Final = {
    REGEX_RULE: _by_expression,
    PII_RULE: _by_personal_data,
    LENGTH_RULE: _by_length,
}


def _rated(value: str, rationale: str) -> Verdict:
    return Verdict(value, rationale, None, None)
