"""Parses serialized scorers that are code. Their code is neither compiled nor run here."""

from __future__ import annotations

import math
from typing import Any, Final

from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.judges import Judge
from mlcore.errors import InvalidParameterValue
from mlcore.limits.evaluation import judges
from mlcore.limits.evaluation.scorers import code_is_allowed

DEFAULT_SECONDS: Final = 300.0
"""MLflow's timeout of a scorer without its own."""
_TEXTS: Final = ("name", "call_source", "call_signature", "original_func_name")


def is_code(data: dict[str, Any]) -> bool:
    """Returns whether a scorer's JSON is a single scorer that is code."""
    return bool(data.get("call_source")) and not data.get("builtin_scorer_class")


def parse_scorer(data: dict[str, Any]) -> Judge | CodeScorer:
    """Returns the scorer that a job can run: a judge or a code scorer.

    Raises:
        InvalidParameterValue: the JSON is not a valid scorer.
        OnlyRunByClients: the scorer is valid, but only a client can run it.
    """
    if not (is_code(data) and code_is_allowed()):
        return judges.parse_judge(data)
    try:
        return _code_scorer(data)
    except InvalidParameterValue as error:
        raise type(error)(f"Failed to validate scorer: {error.message}") from None


def takes_expectations(scorer: CodeScorer) -> bool:
    """Returns whether the scorer's function may ask for expectations. The signature is searched and
    not parsed, because it is a text of a caller."""
    words = scorer.call_signature.replace(",", " ").replace(":", " ").replace("(", " ")
    return "expectations" in words.replace(")", " ").replace("=", " ").split()


def _code_scorer(data: dict[str, Any]) -> CodeScorer:
    for field in _TEXTS:
        if not isinstance(data.get(field), str) or not data[field]:
            raise InvalidParameterValue(f"field '{field}' must be a text that is not empty")
    if not data["original_func_name"].isidentifier():
        raise InvalidParameterValue("field 'original_func_name' must be the name of a function")
    timeout = data.get("timeout", 0)  # none in the JSON of clients that knew no timeout
    if timeout is None:
        timeout = DEFAULT_SECONDS
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise InvalidParameterValue("field 'timeout' must be a number")
    try:
        seconds = float(timeout)
    except OverflowError:
        seconds = 0.0
    if not math.isfinite(seconds) or seconds < 0:
        raise InvalidParameterValue("field 'timeout' must not be negative")
    return CodeScorer(
        name=data["name"],
        call_source=data["call_source"],
        call_signature=data["call_signature"],
        original_func_name=data["original_func_name"],
        timeout=seconds,
        aggregations=judges.aggregations(data),
        of_sessions=bool(data.get("is_session_level_scorer")),
        digest=judges.digest(data),
    )
