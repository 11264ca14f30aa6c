"""Converts the result or the error of a scorer to the JSON of its feedback, by the rules of
MLflow's harness (``Scorer.run`` and ``standardize_scorer_value``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from mlcore.scorer_cage.assessments import (
    DEFAULT_FEEDBACK_NAME,
    Assessment,
    AssessmentError,
    Feedback,
    MlflowException,
    stack_trace,
)

SCORER_ERROR: Final = "SCORER_ERROR"
_USER_DEFINED_NAME: Final = "mlflow.assessment.userDefinedAssessmentName"


def checked(scorer_name: str, result: Any) -> Any:
    """Checks the result of a scorer and returns it, with NumPy's scalars converted to Python's and
    with the scorer's name on a single feedback without a name. Raises MlflowException if the result
    has a wrong type."""
    result = _python_scalar(result)
    for item in result if isinstance(result, list) else [result]:
        if isinstance(item, Feedback):
            item.value = _python_scalar(item.value)
    is_assessments = isinstance(result, list) and all(
        isinstance(item, Assessment) for item in result
    )
    if not (
        result is None
        or is_assessments
        or isinstance(result, int | float | bool | str | Assessment)
    ):
        kind = type(result).__name__
        if isinstance(result, list):
            kind = f"list[{type(result[0]).__name__}]"
        raise MlflowException.invalid_parameter_value(
            f"{scorer_name} must return one of int, float, bool, str, "
            f"Feedback, or list[Feedback]. Got {kind}"
        )
    if isinstance(result, Feedback) and result.name == DEFAULT_FEEDBACK_NAME:
        result.name = scorer_name
    return result


def feedback(scorer_name: str, result: Any) -> list[dict[str, Any]]:
    """Converts the result of a scorer to the JSON of its feedback; an empty list for None. Raises
    MlflowException if the result has a wrong type."""
    result = checked(scorer_name, result)
    if result is None:
        return []
    if isinstance(result, Assessment) and not isinstance(result, Feedback):
        raise MlflowException.invalid_parameter_value(
            f"Got unsupported result from scorer '{scorer_name}'. "
            "Expected the metric value to be a number, or a boolean, or a string, "
            f"or an Feedback, or a list of Feedbacks. Got {result}."
        )
    if isinstance(result, list):
        return [_fields(scorer_name, item) for item in result]
    return [_fields(scorer_name, result)]


def failure(scorer_name: str, error: BaseException) -> list[dict[str, Any]]:
    """Returns the JSON of a list with one feedback: the error of a scorer that failed."""
    text = _text(error)
    fields = {"error_code": SCORER_ERROR, "error_message": text, "stack_trace": stack_trace(error)}
    return [{"name": scorer_name, "source_id": scorer_name, "error": fields}]


def dump(made: list[dict[str, Any]]) -> bytes:
    """Returns the feedback of a scorer as JSON. Raises ValueError or TypeError if it holds a value
    that JSON cannot express."""
    return json.dumps(made, allow_nan=False).encode()


def _fields(scorer_name: str, result: Any) -> dict[str, Any]:
    """Returns the JSON of one feedback. If its source has no id, the feedback's name is the id."""
    if not isinstance(result, Feedback):
        value = str(result) if isinstance(result, str) else result
        return {"name": scorer_name, "source_id": scorer_name, "value": value}
    is_default = result.name == DEFAULT_FEEDBACK_NAME or (
        isinstance(result.metadata, Mapping) and result.metadata.get(_USER_DEFINED_NAME) == "false"
    )
    name = scorer_name if is_default else result.name
    fields: dict[str, Any] = {
        "name": name,
        "source_id": result.source.source_id or name,
        "value": result.value,
        "rationale": result.rationale,
        "metadata": None
        if not result.metadata
        else {str(key): str(value) for key, value in result.metadata.items()},
    }
    if isinstance(result.feedback.error, AssessmentError):
        fields["error"] = result.feedback.error.to_dictionary()
    return fields


def _python_scalar(value: Any) -> Any:
    """Returns a NumPy scalar as a Python value; any other value unchanged."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the error may be of a class of the scorer, with any __str__
        return type(error).__name__
