"""Parses serialized scorers of the kinds that jobs run: judges and scorers that are code."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.judges import Judge
from mlcore.errors import InvalidParameterValue
from mlcore.limits.evaluation import judges
from mlcore.limits.evaluation.code_scorers import code_is_allowed, is_code, parse_code_scorer


def parse_scorer(data: dict[str, Any]) -> Judge | CodeScorer:
    """Returns the scorer that a job can run: a judge or a code scorer.

    Raises:
        InvalidParameterValue: the JSON is not a valid scorer.
        OnlyRunByClients: the scorer is valid, but only a client can run it.
    """
    if not (is_code(data) and code_is_allowed()):
        return judges.parse_judge(data)
    try:
        return parse_code_scorer(data)
    except InvalidParameterValue as error:
        raise type(error)(f"Failed to validate scorer: {error.message}") from None
