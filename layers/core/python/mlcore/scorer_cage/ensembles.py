"""Combines the values of an ensemble's scorers into one feedback, by one of MLflow's functions
(``mlflow.genai.scorers.ensemble``), with MLflow's rules and error messages."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mlcore.scorer_cage.assessments import Feedback, MlflowException

_Function = Callable[[Sequence[Any]], tuple[Any, str]]

_YES_WORDS: Final = """
    true pass passed correct success 1 1.0 yes y yea yeah affirmative absolutely certainly indeed
    sure ok okay agree accepted right positive accurate valid validity confirmed approved complete
    completed good great excellent active enabled on present found match matched validated approve
    accept pos
"""
_NO_WORDS: Final = """
    false fail failed incorrect failure 0 0.0 no n nah nope negative reject rejected disagree
    invalid inaccurate wrong declined denied incomplete bad poor inactive disabled off missing
    absent notfound mismatch mismatched none null nil deny disapprove disapproved neg
"""
_YES: Final = frozenset(_YES_WORDS.split())
_NO: Final = frozenset((*_NO_WORDS.split(), "not approved"))


def combine(name: str, function: str, results: Sequence[tuple[str, Any]]) -> Feedback:
    """Combines the results of an ensemble's scorers, and returns the feedback of the ensemble.

    Args:
        name: the name of the ensemble.
        function: one of :data:`FUNCTIONS`.
        results: (name, result) of each of its scorers. The result of a scorer that failed is
            feedback with the error.

    Raises:
        MlflowException: the results cannot be combined.
    """
    values = [_value(result) for _, result in results]
    for (scorer, _), value in zip(results, values, strict=True):
        if not (value is None or isinstance(value, bool | int | float | str)):
            raise MlflowException.invalid_parameter_value(
                "make_scorer_ensemble only supports sub-scorers returning bool, numeric, or "
                f"categorical (str) values. Sub-scorer '{scorer}' returned {type(value).__name__}."
            )
    try:
        _require_complete(values)
        combined, rationale = FUNCTIONS[function](values)
    except Exception as error:
        failed = "; ".join(
            f"'{result.name}': {result.error_message or result.error_code}"
            for _, result in results
            if isinstance(result, Feedback) and result.error is not None
        )
        suffix = f" Failed sub-scorers -- {failed}." if failed else ""
        raise MlflowException.invalid_parameter_value(
            f"Ensemble scorer '{name}' failed to aggregate its sub-scorer results: {error}{suffix}"
        ) from error
    return Feedback(name=name, value=combined, rationale=rationale)


def _value(result: Any) -> Any:
    if isinstance(result, Feedback):
        return None if result.error is not None else result.value
    if isinstance(result, list):
        raise MlflowException.invalid_parameter_value(
            "make_scorer_ensemble does not support sub-scorers that return a list of Feedback "
            "objects."
        )
    return result


def _require_complete(values: Sequence[Any]) -> None:
    if any(value is None for value in values):
        raise MlflowException.invalid_parameter_value(
            "Aggregation failed: at least one sub-scorer returned no value (it errored or produced "
            "an empty assessment). Built-in aggregation functions require every sub-scorer to "
            "return a value."
        )


def _majority_vote(values: Sequence[Any]) -> tuple[Any, str]:
    counts = Counter(values)
    most = max(counts.values())
    winner = min((value for value, count in counts.items() if count == most), key=str)
    return winner, f"Majority vote over {len(values)} scorers: {dict(counts)}"


def _of_numbers(word: str, combined: Callable[[Sequence[Any]], Any]) -> _Function:
    def function(values: Sequence[Any]) -> tuple[Any, str]:
        for value in values:
            if not isinstance(value, bool | int | float):
                raise MlflowException.invalid_parameter_value(
                    "This ensemble function requires numeric sub-scorer values, but got a value of "
                    f"type {type(value).__name__}. Use majority_vote for categorical values."
                )
        result = combined(values)
        return result, f"{word} over {len(values)} scorers = {result}"

    return function


def _of_answers(word: str, combined: Callable[[Sequence[bool]], bool]) -> _Function:
    def function(values: Sequence[Any]) -> tuple[Any, str]:
        result = combined(list(map(_is_yes, values)))
        return result, f"{word} over {len(values)} scorers = {result}"

    return function


def _is_yes(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise MlflowException.invalid_parameter_value(
        "This ensemble function requires boolean sub-scorer values, but got "
        f"{value!r} (type {type(value).__name__}), which has no yes/no reading. "
        "Use majority_vote for other categorical values."
    )


FUNCTIONS: Final[Mapping[str, _Function]] = {
    "majority_vote": _majority_vote,
    "mean": _of_numbers("Mean", statistics.mean),
    "minimum": _of_numbers("Minimum", min),
    "maximum": _of_numbers("Maximum", max),
    "agg_all": _of_answers("all()", all),
    "agg_any": _of_answers("any()", any),
}
"""The functions that combine the values of an ensemble's scorers, by MLflow's names. Each returns
(value, rationale)."""
