"""The gateway endpoint that a judge calls, in the judge's JSON."""

from __future__ import annotations

from typing import Any, Final

from mlcore.errors import InvalidParameterValue
from mlcore.wire.json_text import load_json

_WITH_MEMORY: Final = "memory_augmented_judge_data"
_MODEL_FIELDS: Final = (
    "instructions_judge_pydantic_data",
    "builtin_scorer_pydantic_data",
    _WITH_MEMORY,
    "third_party_scorer_data",
)


def judge_endpoint(data: dict[str, Any]) -> str | None:
    """Returns the gateway endpoint that a judge calls: its name or, in stored scorers, its id. None
    for a judge that calls a model directly and for a scorer without a model. Raises
    InvalidParameterValue if the model is not a valid text."""
    model = _model(data)
    if model is None:
        return None
    if not isinstance(model, str):
        raise InvalidParameterValue(f"Scorer model must be a string, got {type(model).__name__}.")
    if not model.strip():
        raise InvalidParameterValue("Scorer model cannot be empty or contain only whitespace.")
    provider, separator, name = model.partition(":/")
    return name.lstrip("/") or None if separator and provider == "gateway" else None


def endpoint_in_text(serialized_scorer: Any) -> str | None:
    """Returns the gateway endpoint that a scorer's JSON text names, like :func:`judge_endpoint`;
    None for an invalid scorer, which is refused elsewhere."""
    try:
        data = load_json(serialized_scorer)
        return judge_endpoint(data) if isinstance(data, dict) else None
    except (TypeError, ValueError, InvalidParameterValue):
        return None


def with_endpoint(data: dict[str, Any], endpoint: str | None) -> dict[str, Any]:
    """Returns a copy of a judge's JSON with its model replaced by a gateway endpoint, or by null if
    ``endpoint`` is None. A scorer without a model is returned unchanged."""
    model = None if endpoint is None else f"gateway:/{endpoint}"
    for field in _MODEL_FIELDS:
        fields = data.get(field)
        if fields and isinstance(fields, dict):
            if field == _WITH_MEMORY:
                return {
                    **data,
                    field: {**fields, "base_judge": with_endpoint(fields["base_judge"], endpoint)},
                }
            return {**data, field: {**fields, "model": model}}
    return data


def _model(data: dict[str, Any]) -> Any:
    for field in _MODEL_FIELDS:
        fields = data.get(field)
        if fields and isinstance(fields, dict):
            if field == _WITH_MEMORY:
                base = fields.get("base_judge", {})
                return _model(base) if isinstance(base, dict) else None
            return fields.get("model")
    return None
