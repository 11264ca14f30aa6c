"""Parses serialized scorers into judges that this server can run, and explains why it cannot run
others.

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
    RULES,
    VARIABLES,
    Judge,
)
from mlcore.errors import InvalidParameterValue
from mlcore.limits.evaluation import rule_scorers

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
_AGGREGATIONS: Final = frozenset(("min", "max", "mean", "median", "variance", "p90"))
YES_OR_NO: Final = {"enum": ["yes", "no"], "type": "string"}
_FRUSTRATION: Final = {"enum": ["none", "resolved", "unresolved"], "type": "string"}
_VARIABLE: Final = re.compile(
    r"\{\{\s*([a-zA-Z_][a-zA-Z0-9_]*(?:\.[a-zA-Z_][a-zA-Z0-9_]*)*)\s*\}\}"
)
_EXCLUDED_FROM_DIGEST: Final = frozenset(("mlflow_version", "serialization_version", "timeout"))
_PRIMITIVES: Final = frozenset(("string", "integer", "number", "boolean"))
_OTHER_KINDS: Final = {
    "memory_augmented_judge_data": "judges with a memory (MemAlign)",
    "third_party_scorer_data": "scorers of other libraries (DeepEval, Ragas and others)",
    "ensemble_scorer_data": "ensembles with judges",
}
_KINDS: Final = {
    "builtin_scorer_class": "builtin scorer",
    "call_source": "decorator scorer",
    "instructions_judge_pydantic_data": "instructions judge",
    "memory_augmented_judge_data": "memory augmented judge",
    "third_party_scorer_data": "third-party scorer",
    "ensemble_scorer_data": "ensemble scorer",
}
"""MLflow's names of the kinds of scorers, by the field that each kind has."""


class OnlyRunByClients(InvalidParameterValue):
    """Raised for a valid scorer that an MLflow client can run, but this server cannot."""


def parse_judge(data: dict[str, Any]) -> Judge:
    """Returns the judge that a scorer's JSON describes.

    Raises:
        InvalidParameterValue: the JSON is not a valid scorer.
        OnlyRunByClients: the scorer is valid, but only a client can run it.
    """
    try:
        return _parse(data)
    except InvalidParameterValue as error:
        raise type(error)(f"Failed to validate scorer: {error.message}") from None


def _parse(data: dict[str, Any]) -> Judge:
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidParameterValue(
            "Failed to parse serialized scorer data: a scorer must have a name that is a string"
        )
    check_kinds(data)
    if data.get("builtin_scorer_class"):
        return _builtin_judge(name, data)
    if data.get("call_source"):
        raise OnlyRunByClients(
            f"Scorer '{name}' is code, which this server does not run here. "
            "Run it with mlflow.genai.evaluate from a client, or register a judge instead."
        )
    if data.get("instructions_judge_pydantic_data") is not None:
        return _instructions_judge(name, data)
    for field, kind in _OTHER_KINDS.items():
        if data.get(field) is not None:
            raise OnlyRunByClients(
                f"Scorer '{name}' cannot run on this server, which does not run {kind}. "
                "Run it with mlflow.genai.evaluate from a client."
            )
    raise InvalidParameterValue(
        f"Failed to load scorer '{name}'. The scorer is serialized in an unknown format that "
        "cannot be deserialized."
    )


def check_kinds(data: dict[str, Any]) -> None:
    """Checks that a scorer's JSON describes one kind of scorer. Raises InvalidParameterValue
    otherwise."""
    kinds = [field for field in _KINDS if data.get(field) is not None]
    if len(kinds) == 1:
        return
    about = "Failed to parse serialized scorer data: SerializedScorer "
    if kinds:
        raise InvalidParameterValue(
            f"{about}cannot have multiple types of scorer fields present simultaneously"
        )
    *shown, last = (f"{kind} fields ({field})" for field, kind in _KINDS.items())
    raise InvalidParameterValue(f"{about}must have either {', '.join(shown)}, or {last} present")


def _builtin_judge(name: str, data: dict[str, Any]) -> Judge:
    scorer_class, settings = (
        data["builtin_scorer_class"],
        data.get("builtin_scorer_pydantic_data") or {},
    )
    known = TRACE_JUDGES | SESSION_JUDGES | RULES
    if not isinstance(scorer_class, str) or scorer_class not in known:
        raise InvalidParameterValue(f"Unknown builtin scorer class: {scorer_class}")
    if not isinstance(settings, dict):
        raise InvalidParameterValue("builtin_scorer_pydantic_data must be a JSON object")
    if scorer_class in RULES:
        rule_scorers.check_settings(scorer_class, settings)
    needs_guidelines = scorer_class in ("Guidelines", "ConversationalGuidelines")
    guidelines = settings.get("guidelines")
    if needs_guidelines and not _is_text_or_texts(guidelines):
        raise InvalidParameterValue(
            f"Scorer '{name}' needs guidelines: a string or a list of strings"
        )
    return Judge(
        name=_text(settings, "name") or name,
        model=_text(settings, "model"),
        instructions="",
        variables=(),
        value=_FRUSTRATION if scorer_class == "UserFrustration" else YES_OR_NO,
        rationale_first=False,
        inference_params=_object(settings.get("inference_params"), "inference_params"),
        aggregations=aggregations(data),
        of_sessions=scorer_class in SESSION_JUDGES,
        builtin=scorer_class,
        settings=settings,
        digest=digest(data),
    )


def _instructions_judge(name: str, data: dict[str, Any]) -> Judge:
    fields = data["instructions_judge_pydantic_data"]
    if not isinstance(fields, dict):
        raise InvalidParameterValue("instructions_judge_pydantic_data must be a JSON object")
    problems = []
    for field in ("instructions", "model"):
        if field not in fields:
            problems.append(f"missing required field '{field}'")
        elif not isinstance(fields[field], str):
            problems.append(f"field '{field}' must be str, got {_python_name(fields[field])}")
    if problems:
        raise InvalidParameterValue(
            f"Failed to deserialize InstructionsJudge scorer '{name}': {'; '.join(problems)}"
        )
    value = fields.get("feedback_value_type")
    schema = {"type": "string"} if value is None else value
    check_answer_schema(schema)
    try:
        variables = _variables(fields["instructions"])
        params = _object(fields.get("inference_params"), "inference_params")
        if fields.get("model_api") == "decisions":
            raise OnlyRunByClients("This server asks models through chat completions only.")
    except InvalidParameterValue as error:
        raise type(error)(
            f"Failed to create InstructionsJudge scorer '{name}': {error.message}"
        ) from None
    return Judge(
        name=name,
        model=fields["model"],
        instructions=fields["instructions"],
        variables=variables,
        value=schema,
        rationale_first=bool(fields.get("generate_rationale_first", False)),
        inference_params=params,
        aggregations=aggregations(data),
        of_sessions=CONVERSATION in variables,
        builtin="",
        settings={},
        digest=digest(data),
    )


def _variables(instructions: str) -> tuple[str, ...]:
    if not instructions:
        raise InvalidParameterValue("instructions must be a non-empty string")
    names = dict.fromkeys(_VARIABLE.findall(instructions))
    custom = {name for name in names if name not in VARIABLES}
    if custom:
        raise InvalidParameterValue(
            f"Instructions template contains unsupported variables: {custom}. "
            f"Only the following variables are allowed: {', '.join(VARIABLES)}"
        )
    if not names:
        raise InvalidParameterValue(
            "Instructions template must contain at least one variable (e.g., {{ inputs }}, "
            "{{ outputs }}, {{ trace }}, {{ expectations }}, or {{ conversation }})."
        )
    if CONVERSATION in names and set(names) - {EXPECTATIONS, CONVERSATION}:
        raise InvalidParameterValue(
            "Instructions template must not contain any template variables "
            "other than {{ expectations }} if {{ conversation }} is provided."
        )
    return tuple(names)


def check_answer_schema(schema: Any) -> None:
    """Checks the JSON Schema of a judge's answer. Allowed are a primitive type, a primitive type or
    null, fixed primitive values (``enum``, ``const``), and a map or list of one primitive type.
    Raises InvalidParameterValue otherwise."""
    if not isinstance(schema, dict):
        raise InvalidParameterValue(f"Invalid feedback_value_type serialization: {schema}")
    if "anyOf" in schema:
        alternatives = schema["anyOf"] if isinstance(schema["anyOf"], list) else []
        types = {str(part.get("type")) for part in alternatives if isinstance(part, dict)}
        if len(alternatives) != 2 or len(types & _PRIMITIVES) != 1 or "null" not in types:
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
    json_type = schema.get("type")
    if json_type is None:
        raise InvalidParameterValue(f"Invalid feedback_value_type serialization: {schema}")
    if isinstance(json_type, str) and json_type in _PRIMITIVES:
        return
    inner_field = {"object": "additionalProperties", "array": "items"}.get(str(json_type))
    if inner_field is None:
        raise InvalidParameterValue(
            f"Unsupported JSON Schema type: {json_type}. "
            "Only string, integer, number, boolean, object, and array are supported."
        )
    inner = schema.get(inner_field)
    if not isinstance(inner, dict) or str(inner.get("type")) not in _PRIMITIVES:
        raise InvalidParameterValue(f"Invalid feedback_value_type serialization: {schema}")


def _is_primitive(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def aggregations(data: dict[str, Any]) -> tuple[str, ...]:
    """Returns the names of the aggregations in a scorer's JSON (statistics of its ratings, such as
    ``median``); only ``mean`` if the JSON does not have the field. Raises InvalidParameterValue for
    an unknown name."""
    names = data.get("aggregations")
    if names is None:
        return ("mean",)
    if not isinstance(names, list):
        raise InvalidParameterValue("aggregations must be a list")
    for name in names:
        if not isinstance(name, str) or name not in _AGGREGATIONS:
            raise InvalidParameterValue(f"Invalid aggregation: {name}")
    return tuple(names)


def _is_text_or_texts(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, str) for item in value)
    return isinstance(value, str) and bool(value)


def _text(fields: dict[str, Any], field: str) -> str:
    value = fields.get(field) or ""
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


def digest(data: dict[str, Any]) -> str:
    """Returns the digest of a scorer's definition, computed as MLflow's clients do."""
    text = json.dumps(_definition(data), sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _definition(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: sorted(item, key=str)
            if key == "required_columns" and isinstance(item, list)
            else _definition(item)
            for key, item in value.items()
            if key not in _EXCLUDED_FROM_DIGEST
        }
    return list(map(_definition, value)) if isinstance(value, list) else value
