"""What may be in a scorer; runs none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Final

from mlcore.errors import InvalidParameterValue

_DECORATED: Final = (
    "Custom scorer registration (using @scorer decorator) is disabled by default "
    "outside of Databricks tracking environments due to security concerns. "
    "Custom scorers require arbitrary code execution during deserialization.\n\n"
    "To use custom scorers:\n"
    "1. Configure MLflow to use a Databricks tracking URI, or\n"
    "2. Manage your custom scorer code in a source code repository "
    "(e.g., GitHub) and import it directly, or\n"
    "3. On a self-managed MLflow server (or local environment) that you trust to run the "
    "scorer's code, set the MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS environment variable to true, or\n"
    "4. Use built-in scorers or make_judge() scorers instead."
)
_DESTINATIONS: Final = frozenset(
    ("api_base", "base_url", "model_list", "fallbacks", "custom_llm_provider")
)
_WITH_MEMORY: Final = "memory_augmented_judge_data"
_HELD_BY: Final = (
    "instructions_judge_pydantic_data",
    "builtin_scorer_pydantic_data",
    _WITH_MEMORY,
    "third_party_scorer_data",
)


def check_name(name: str) -> None:
    if not name.strip():
        raise InvalidParameterValue("Scorer name cannot be empty or contain only whitespace.")


def check_payload(serialized_scorer: str) -> dict[str, Any]:
    """What a scorer's JSON text holds.

    Raises:
        InvalidParameterValue: it is no JSON object, or brings code although nobody has said with
            MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS that it may.
    """
    try:
        data = json.loads(serialized_scorer)
    except (ValueError, RecursionError):
        raise InvalidParameterValue("serialized_scorer must be valid JSON") from None
    if not _allowed_code() and any(part.get("call_source") is not None for part in _objects(data)):
        raise InvalidParameterValue(_DECORATED)
    if not isinstance(data, dict):
        raise InvalidParameterValue("serialized_scorer must be the JSON text of an object")
    for part in _objects(data):
        third_party = part.get("third_party_scorer_data")
        if isinstance(third_party, dict):
            _check_destinations(third_party.get("kwargs"))
    return data


def endpoint_asked(data: dict[str, Any]) -> str | None:
    """What of the gateway a judge asks: the name of an endpoint or, as it is kept, its id; None for
    one that asks a model directly or none. Raises InvalidParameterValue: its model is none."""
    model = _model(data)
    if model is None:
        return None
    if not isinstance(model, str):
        raise InvalidParameterValue(f"Scorer model must be a string, got {type(model).__name__}.")
    if not model.strip():
        raise InvalidParameterValue("Scorer model cannot be empty or contain only whitespace.")
    provider, separator, name = model.partition(":/")
    return name.lstrip("/") or None if separator and provider == "gateway" else None


def endpoint_in(serialized_scorer: Any) -> str | None:
    """As :func:`endpoint_asked`, of a scorer's JSON text; None for what is no scorer, which is
    refused elsewhere."""
    try:
        data = json.loads(serialized_scorer)
        return endpoint_asked(data) if isinstance(data, dict) else None
    except (TypeError, ValueError, RecursionError, InvalidParameterValue):
        return None


def asking(data: dict[str, Any], endpoint: str | None) -> dict[str, Any]:
    """A judge that asks another endpoint, or a model that is not said."""
    model = None if endpoint is None else f"gateway:/{endpoint}"
    for name in _HELD_BY:
        held = data.get(name)
        if held and isinstance(held, dict):
            if name == _WITH_MEMORY:
                return {**data, name: {**held, "base_judge": asking(held["base_judge"], endpoint)}}
            return {**data, name: {**held, "model": model}}
    return data


def _model(data: dict[str, Any]) -> Any:
    for name in _HELD_BY:
        held = data.get(name)
        if held and isinstance(held, dict):
            if name == _WITH_MEMORY:
                base = held.get("base_judge", {})
                return _model(base) if isinstance(base, dict) else None
            return held.get("model")
    return None


def _allowed_code() -> bool:
    return os.environ.get("MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS", "").lower() in ("true", "1")


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """All JSON objects in a value."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _option_names(value: Any) -> Iterator[str]:
    """The keys of all objects in a value, and what pairs of a list would make keys of."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield from part
            pending += part.values()
        elif isinstance(part, list):
            if len(part) == 2 and isinstance(part[0], str):
                yield part[0]
            pending += part


def _check_destinations(arguments: Any) -> None:
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidParameterValue(
            f"third_party_scorer_data.kwargs must be a JSON object, got {type(arguments).__name__}."
        )
    found = sorted(_DESTINATIONS.intersection(_option_names(arguments)))
    if found:
        raise InvalidParameterValue(
            f"third_party_scorer_data.kwargs must not contain {', '.join(map(repr, found))}: "
            "these options choose where the scorer's LLM client sends requests. Configure "
            "the judge endpoint on the server instead, for example through a gateway "
            "endpoint ('gateway:/<name>') or the provider's environment variables."
        )
