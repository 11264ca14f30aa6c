"""Which scorers are judges that a server can run, and what is wrong with those that are none; runs
none.

The rules and messages are those of MLflow's deserialization (``mlflow.genai.scorers.base``).
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

from mlcore.entities.evaluation.judges import (
    CONVERSATION,
    EXPECTATIONS,
    VARIABLES,
    Judge,
)
from mlcore.errors import InvalidParameterValue

TRACE_JUDGES: Final = frozenset(
    (
        "RetrievalRelevance",
        "RetrievalSufficiency",
        "RetrievalGroundedness",
        "ToolCallEfficiency",
        "ToolCallCorrectness",
        "Guidelines",
        "ExpectationsGuidelines",
        "RelevanceToQuery",
        "Safety",
        "Correctness",
        "Fluency",
        "Equivalence",
        "Completeness",
        "Summarization",
    )
)
SESSION_JUDGES: Final = frozenset(
    (
        "UserFrustration",
        "ConversationCompleteness",
        "ConversationalSafety",
        "ConversationalToolCallEfficiency",
        "ConversationalRoleAdherence",
        "ConversationalGuidelines",
        "KnowledgeRetention",
    )
)
_WITHOUT_MODEL: Final = frozenset(("RegexMatch", "PIIDetection", "ResponseLength"))
_AGGREGATIONS: Final = frozenset(("min", "max", "mean", "median", "variance", "p90"))
YES_OR_NO: Final = {"enum": ["yes", "no"], "type": "string"}
_FRUSTRATION: Final = {"enum": ["none", "resolved", "unresolved"], "type": "string"}
_VARIABLE: Final = re.compile(
    r"\{\{\s*([a-zA-Z_][a-zA-Z0-9_]*(?:\.[a-zA-Z_][a-zA-Z0-9_]*)*)\s*\}\}"
)
_NOT_DEFINITION: Final = frozenset(("mlflow_version", "serialization_version", "timeout"))
_PRIMITIVES: Final = frozenset(("string", "integer", "number", "boolean"))
_OTHER_KINDS: Final = {
    "memory_augmented_judge_data": "judges with a memory",
    "third_party_scorer_data": "scorers of other libraries",
    "ensemble_scorer_data": "ensembles of scorers",
}


class NotRunHere(InvalidParameterValue):
    """The scorer is complete, but only a client can run it."""


def judge(data: dict[str, Any]) -> Judge:
    """The judge that a scorer's JSON describes.

    Raises:
        InvalidParameterValue: it describes none.
        NotRunHere: it describes one that only a client can run.
    """
    try:
        return _judge(data)
    except InvalidParameterValue as error:
        raise type(error)(f"Failed to validate scorer: {error.message}") from None


def _judge(data: dict[str, Any]) -> Judge:
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidParameterValue(
            "Failed to parse serialized scorer data: a scorer needs a name, which is a text"
        )
    if data.get("builtin_scorer_class"):
        return _builtin(name, data)
    if data.get("call_source"):
        raise NotRunHere(
            f"Scorer '{name}' is code, and this server runs no code of its callers. "
            "Run it with mlflow.genai.evaluate from a client, or register a judge instead."
        )
    if data.get("instructions_judge_pydantic_data") is not None:
        return _of_instructions(name, data)
    for field, kind in _OTHER_KINDS.items():
        if data.get(field) is not None:
            raise NotRunHere(
                f"Scorer '{name}' cannot run on this server, which does not run {kind}. "
                "Run it with mlflow.genai.evaluate from a client."
            )
    raise InvalidParameterValue(
        f"Failed to load scorer '{name}'. The scorer is serialized in an unknown format that "
        "cannot be deserialized."
    )


def _builtin(name: str, data: dict[str, Any]) -> Judge:
    kind, settings = data["builtin_scorer_class"], data.get("builtin_scorer_pydantic_data") or {}
    if kind in _WITHOUT_MODEL:
        raise NotRunHere(
            f"Scorer '{name}' asks no model, and this server runs only judges that do. "
            "Run it with mlflow.genai.evaluate from a client."
        )
    if not isinstance(kind, str) or kind not in TRACE_JUDGES | SESSION_JUDGES:
        raise InvalidParameterValue(f"Unknown builtin scorer class: {kind}")
    if not isinstance(settings, dict):
        raise InvalidParameterValue("builtin_scorer_pydantic_data must be a JSON object")
    guided = kind in ("Guidelines", "ConversationalGuidelines")
    guidelines = settings.get("guidelines")
    if guided and not _texts(guidelines):
        raise InvalidParameterValue(f"Scorer '{name}' needs guidelines: a text, or a list of texts")
    return Judge(
        name=settings.get("name") or name,
        model=_text(settings, "model"),
        instructions="",
        variables=(),
        value=_FRUSTRATION if kind == "UserFrustration" else YES_OR_NO,
        rationale_first=False,
        inference_params=_object(settings.get("inference_params"), "inference_params"),
        aggregations=_aggregations(data),
        of_sessions=kind in SESSION_JUDGES,
        builtin=kind,
        settings=settings,
        digest=_digest(data),
    )


def _of_instructions(name: str, data: dict[str, Any]) -> Judge:
    held = data["instructions_judge_pydantic_data"]
    if not isinstance(held, dict):
        raise InvalidParameterValue("instructions_judge_pydantic_data must be a JSON object")
    wrong = []
    for field in ("instructions", "model"):
        if field not in held:
            wrong.append(f"missing required field '{field}'")
        elif not isinstance(held[field], str):
            wrong.append(f"field '{field}' must be str, got {_python_name(held[field])}")
    if wrong:
        raise InvalidParameterValue(
            f"Failed to deserialize InstructionsJudge scorer '{name}': {'; '.join(wrong)}"
        )
    value = held.get("feedback_value_type")
    schema = {"type": "string"} if value is None else value
    check_value(schema)
    try:
        variables = _variables(held["instructions"])
        params = _object(held.get("inference_params"), "inference_params")
        if held.get("model_api") == "decisions":
            raise NotRunHere("This server asks models by chat alone.")
    except InvalidParameterValue as error:
        raise type(error)(
            f"Failed to create InstructionsJudge scorer '{name}': {error.message}"
        ) from None
    return Judge(
        name=name,
        model=held["model"],
        instructions=held["instructions"],
        variables=variables,
        value=schema,
        rationale_first=bool(held.get("generate_rationale_first", False)),
        inference_params=params,
        aggregations=_aggregations(data),
        of_sessions=CONVERSATION in variables,
        builtin="",
        settings={},
        digest=_digest(data),
    )


def _variables(instructions: str) -> tuple[str, ...]:
    if not instructions:
        raise InvalidParameterValue("instructions must be a non-empty string")
    named = dict.fromkeys(_VARIABLE.findall(instructions))
    custom = {each for each in named if each not in VARIABLES}
    if custom:
        raise InvalidParameterValue(
            f"Instructions template contains unsupported variables: {custom}. "
            f"Only the following variables are allowed: {', '.join(VARIABLES)}"
        )
    if not named:
        raise InvalidParameterValue(
            "Instructions template must contain at least one variable (e.g., {{ inputs }}, "
            "{{ outputs }}, {{ trace }}, {{ expectations }}, or {{ conversation }})."
        )
    if CONVERSATION in named and set(named) - {EXPECTATIONS, CONVERSATION}:
        raise InvalidParameterValue(
            "Instructions template must not contain any template variables "
            "other than {{ expectations }} if {{ conversation }} is provided."
        )
    return tuple(named)


def check_value(schema: Any) -> None:
    """What a judge's answer may be: JSON Schema of a primitive, of one of several primitives, or of
    a map or a list of one kind of them."""
    if not isinstance(schema, dict):
        raise InvalidParameterValue(f"Invalid feedback_value_type serialization: {schema}")
    if "anyOf" in schema:
        parts = schema["anyOf"] if isinstance(schema["anyOf"], list) else []
        kinds = {str(part.get("type")) for part in parts if isinstance(part, dict)}
        if len(parts) != 2 or len(kinds & _PRIMITIVES) != 1 or "null" not in kinds:
            raise InvalidParameterValue(f"Invalid feedback_value_type serialization: {schema}")
        return
    if "enum" in schema:
        values = schema["enum"]
        if not isinstance(values, list) or not values or not all(map(_is_primitive, values)):
            raise InvalidParameterValue(f"Enum must contain primitive values: {schema}")
        return
    if "const" in schema:
        if not _is_primitive(schema["const"]):
            raise InvalidParameterValue(f"Const must contain a primitive value: {schema}")
        return
    kind = schema.get("type")
    if kind is None:
        raise InvalidParameterValue(f"Invalid feedback_value_type serialization: {schema}")
    if isinstance(kind, str) and kind in _PRIMITIVES:
        return
    within = {"object": "additionalProperties", "array": "items"}.get(str(kind))
    if within is None:
        raise InvalidParameterValue(
            f"Unsupported JSON Schema type: {kind}. "
            "Only string, integer, number, boolean, object, and array are supported."
        )
    inner = schema.get(within)
    if not isinstance(inner, dict) or inner.get("type") not in _PRIMITIVES:
        raise InvalidParameterValue(f"Invalid feedback_value_type serialization: {schema}")


def _is_primitive(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _aggregations(data: dict[str, Any]) -> tuple[str, ...]:
    """Of those that are code, none; by default the mean alone."""
    named = data.get("aggregations")
    if named is None:
        return ("mean",)
    if not isinstance(named, list):
        raise InvalidParameterValue("aggregations must be a list")
    for each in named:
        if not isinstance(each, str) or each not in _AGGREGATIONS:
            raise InvalidParameterValue(f"Invalid aggregation: {each}")
    return tuple(named)


def _texts(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, str) for each in value)
    return isinstance(value, str) and bool(value)


def _text(held: dict[str, Any], field: str) -> str:
    value = held.get(field) or ""
    if not isinstance(value, str):
        raise InvalidParameterValue(f"field '{field}' must be str, got {_python_name(value)}")
    return value


def _object(value: Any, field: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidParameterValue(f"field '{field}' must be dict, got {_python_name(value)}")
    return value


def _python_name(value: Any) -> str:
    return type(value).__name__


def _digest(data: dict[str, Any]) -> str:
    """As MLflow's clients make it of a scorer's definition."""
    text = json.dumps(_definition(data), sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _definition(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: sorted(item, key=str)
            if key == "required_columns" and isinstance(item, list)
            else _definition(item)
            for key, item in value.items()
            if key not in _NOT_DEFINITION
        }
    return list(map(_definition, value)) if isinstance(value, list) else value
