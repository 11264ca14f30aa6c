"""Parses serialized scorers that are code. Their code is neither compiled nor run here."""

from __future__ import annotations

import json
import math
import os
from typing import Any, Final

from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.scorers import ScorerVersion, SealedSource
from mlcore.errors import InvalidParameterValue
from mlcore.limits.evaluation import judges

DEFAULT_SECONDS: Final = 300.0
"""MLflow's timeout of a scorer without its own."""
ENSEMBLE_FUNCTIONS: Final = frozenset(
    ("majority_vote", "mean", "minimum", "maximum", "agg_all", "agg_any")
)
"""MLflow's functions that combine the values of an ensemble's scorers."""
_TEXTS: Final = ("name", "call_source", "call_signature", "original_func_name")


def is_code(data: Any) -> bool:
    """Returns whether a scorer's JSON is a scorer that is code, or an ensemble of such scorers
    only."""
    if not isinstance(data, dict) or data.get("builtin_scorer_class"):
        return False
    if data.get("call_source"):
        return True
    parts = _parts_of_ensemble(data)
    return bool(parts) and all(map(is_code, parts))


def parse_code_scorer(data: dict[str, Any]) -> CodeScorer:
    """Returns the scorer of a JSON for which :func:`is_code` is true. Raises
    InvalidParameterValue."""
    judges.check_kinds(data)
    return _function(data) if data.get("call_source") else _ensemble(data)


def sealed_source(version: ScorerVersion) -> SealedSource | None:
    """Returns the name, version and digest of the source code that a job needs to run a version of
    a scorer; None if the scorer is not code. Raises InvalidParameterValue if the version's item was
    changed since the version was registered."""
    if not is_code(json.loads(version.serialized_scorer)):
        return None
    if not version.is_intact():
        raise InvalidParameterValue(
            f"Version {version.version} of scorer '{version.name}' is not what was registered, so "
            "its source is not run. Register it again."
        )
    return version.source()


def takes_expectations(scorer: CodeScorer) -> bool:
    """Returns whether the scorer's function (or that of any scorer in an ensemble) may have the
    argument ``expectations``. The signature is searched and not parsed, because callers can send
    any text as signature."""
    words = scorer.call_signature.replace(",", " ").replace(":", " ").replace("(", " ")
    is_asked = "expectations" in words.replace(")", " ").replace("=", " ").split()
    return is_asked or any(map(takes_expectations, scorer.scorers))


def _function(data: dict[str, Any]) -> CodeScorer:
    for field in _TEXTS:
        if not isinstance(data.get(field), str) or not data[field]:
            raise InvalidParameterValue(f"field '{field}' must be a text that is not empty")
    if not data["original_func_name"].isidentifier():
        raise InvalidParameterValue("field 'original_func_name' must be the name of a function")
    timeout = data.get("timeout", 0)  # older clients send no timeout
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


def _ensemble(data: dict[str, Any]) -> CodeScorer:
    """Returns an ensemble, checked as MLflow's ``make_scorer_ensemble`` does. Its scorers run one
    after the other, so its timeout is the sum of theirs; it has none if one of them has none."""
    name, function = data.get("name"), data["ensemble_scorer_data"].get("ensemble_fn")
    if not isinstance(name, str) or not name:
        raise InvalidParameterValue("field 'name' must be a text that is not empty")
    if not isinstance(function, str) or function not in ENSEMBLE_FUNCTIONS:
        raise InvalidParameterValue(
            f"Ensemble scorer '{name}': unknown ensemble function '{function}'. "
            f"Available: {sorted(ENSEMBLE_FUNCTIONS)}."
        )
    scorers = tuple(map(parse_code_scorer, _parts_of_ensemble(data)))
    if len({scorer.of_sessions for scorer in scorers}) > 1:
        raise InvalidParameterValue(
            "All sub-scorers passed to make_scorer_ensemble must be the same level: "
            "either all session-level or all single-turn."
        )
    seconds = [scorer.timeout for scorer in scorers]
    return CodeScorer(
        name=name,
        call_source="",
        call_signature="",
        original_func_name="",
        timeout=sum(seconds) if all(seconds) else 0.0,
        aggregations=judges.aggregations(data),
        of_sessions=scorers[0].of_sessions,
        digest=judges.digest(data),
        ensemble_function=function,
        scorers=scorers,
    )


def _parts_of_ensemble(data: dict[str, Any]) -> list[Any]:
    """Returns the scorers of an ensemble's JSON; none for anything else."""
    ensemble = data.get("ensemble_scorer_data")
    parts = ensemble.get("scorers") if isinstance(ensemble, dict) else None
    return parts if isinstance(parts, list) else []


def code_is_allowed() -> bool:
    """Returns whether the operator allows scorers that are code (as with MLflow's server)."""
    return os.environ.get("MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS", "").lower() in ("true", "1")
