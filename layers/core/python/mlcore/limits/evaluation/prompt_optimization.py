"""Rules about the optimization of prompts, with MLflow's messages where it has the rule. MLflow
checks most of them in the job; this server checks them before it creates the job."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.entities.evaluation.prompt_optimization import (
    GEPA,
    METAPROMPT,
    OPTIMIZER_TYPES,
    EvolutionSettings,
    OptimizerSettings,
)
from mlcore.errors import InvalidParameterValue
from mlcore.wire.json_text import NestedTooDeeply, load_json

MAX_METRIC_CALLS: Final = 10_000
MAX_MINIBATCH: Final = 100
MAX_RECORDS: Final = 1_000
"""Maximum number of records in the dataset of an optimization."""
MAX_SCORERS: Final = 20
MAX_GUIDELINES: Final = 20_000
MAX_CONFIG: Final = 100_000
"""Characters of ``optimizer_config_json``."""
_OPTIMIZER_LABELS: Final = {GEPA: "GEPA", METAPROMPT: "MetaPrompt"}
_SELECTIONS: Final = ("pareto", "current_best")
_CRITERIA: Final = ("strict_improvement", "improvement_or_equal")
_LM_PARAMETERS: Final = (
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "presence_penalty",
    "frequency_penalty",
)
_GATEWAY: Final = "gateway"
BUILTIN_SCORERS: Final = frozenset(
    (
        "RelevanceToQuery",
        "Safety",
        "Correctness",
        "Fluency",
        "Equivalence",
        "Completeness",
        "Summarization",
        "ExpectationsGuidelines",
    )
)
"""Built-in judges that need no settings and no spans, so that they can judge the answer to a
prompt. A request names them by their class name."""
_OTHER_BUILTINS: Final = frozenset(
    (
        "RetrievalRelevance",
        "RetrievalSufficiency",
        "RetrievalGroundedness",
        "ToolCallEfficiency",
        "ToolCallCorrectness",
        "UserFrustration",
        "ConversationCompleteness",
        "ConversationalSafety",
        "ConversationalToolCallEfficiency",
        "ConversationalRoleAdherence",
        "KnowledgeRetention",
        "PIIDetection",
    )
)
"""Built-in scorers that MLflow accepts by their class name, but that cannot judge the answer to a
prompt on this server."""


def optimizer_type(given: str | None) -> str:
    """Returns MLflow's short name of a prompt optimizer for a name of the protobuf enum. Raises
    InvalidParameterValue for None and for an unknown name."""
    known = OPTIMIZER_TYPES.get(given or "")
    if known is None:
        raise InvalidParameterValue(
            f"optimizer_type is required. Supported types: {list(OPTIMIZER_TYPES)}"
        )
    return known


def parse_config(text: str) -> dict[str, Any] | None:
    """Returns the object that the text ``optimizer_config_json`` holds; None for an empty text.
    Raises InvalidParameterValue if it is too long or no JSON object."""
    if not text:
        return None
    if len(text) > MAX_CONFIG:
        raise InvalidParameterValue(
            f"optimizer_config_json must have at most {MAX_CONFIG} characters"
        )
    try:
        config = load_json(text, parse_constant=_refuse_constant)
        json.dumps(config, ensure_ascii=False).encode()  # raises for unpaired surrogates
    except (NestedTooDeeply, RecursionError):
        raise InvalidParameterValue(
            "Invalid JSON in optimizer_config_json: it is nested too deeply"
        ) from None
    except ValueError as error:
        raise InvalidParameterValue(
            f"Invalid JSON in optimizer_config_json: {_reason(error)}"
        ) from None
    if not isinstance(config, dict):
        raise InvalidParameterValue("optimizer_config_json must be a JSON object")
    return config


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _reason(error: ValueError) -> str:
    return "it has half a character" if isinstance(error, UnicodeError) else str(error)


def optimizer_settings(kind: str, config: Mapping[str, Any] | None) -> OptimizerSettings:
    """Returns the checked settings of a prompt optimizer. Raises InvalidParameterValue."""
    given = config or {}
    model = given.get("reflection_model")
    if not model:
        raise InvalidParameterValue(
            "Missing required optimizer configuration: 'reflection_model' must be specified "
            f"in optimizer_config for the {_OPTIMIZER_LABELS[kind]} optimizer "
            "(e.g., 'gateway:/my-endpoint')."
        )
    endpoint = endpoint_of_model(model)
    if endpoint is None:
        raise InvalidParameterValue(
            f"The reflection_model {_shown(model)} cannot be reached by this server. "
            "Use an endpoint of the AI gateway: 'gateway:/<name>'."
        )
    if kind == GEPA:
        return OptimizerSettings(endpoint, _evolution(given))
    guidelines = given.get("guidelines") or ""
    if not isinstance(guidelines, str) or len(guidelines) > MAX_GUIDELINES:
        raise InvalidParameterValue(
            f"guidelines must be a string of at most {MAX_GUIDELINES} characters"
        )
    return OptimizerSettings(
        endpoint, guidelines=guidelines, lm_parameters=_lm_parameters(given.get("lm_kwargs"))
    )


def endpoint_of_model(model: Any) -> str | None:
    """Returns the gateway endpoint in ``gateway:/name``; None for another model."""
    if not isinstance(model, str):
        return None
    provider, separator, name = model.partition(":/")
    name = name.lstrip("/")
    return name if provider == _GATEWAY and separator and name else None


def endpoint_of_prompt(uri: str, model_config: Any) -> str:
    """Returns the gateway endpoint that a prompt's ``model_config`` names. Raises
    InvalidParameterValue."""
    provider, name = (
        (model_config.get("provider"), model_config.get("model_name"))
        if isinstance(model_config, dict)
        else (None, None)
    )
    endpoint = endpoint_of_model(name)
    if endpoint is not None:
        return endpoint
    if not provider or not name:
        raise InvalidParameterValue(
            f"Prompt {uri} doesn't have a model configuration that sets provider and "
            "model_name, which are required for optimization."
        )
    endpoint = endpoint_of_model(f"{provider}:/{name}")
    if endpoint is None:
        raise InvalidParameterValue(
            f"The model {_shown(f'{provider}/{name}')} of prompt {uri} cannot be reached by this "
            "server. Set the provider 'gateway' and the name of an endpoint of the AI gateway in "
            "the prompt's model configuration."
        )
    return endpoint


def check_data(kind: str, *, has_dataset: bool, scorers: int) -> None:
    """Checks that a prompt optimizer has the dataset and scorers that it needs, and not too many
    scorers. Raises InvalidParameterValue."""
    if kind == GEPA and not has_dataset:
        raise InvalidParameterValue("GEPA optimizer requires `train_data` to be provided.")
    if kind == GEPA and not scorers:
        raise InvalidParameterValue("The GEPA optimizer requires at least one scorer.")
    if scorers and not has_dataset:
        raise InvalidParameterValue(
            "`scorers` is provided but `train_data` is None or empty or None. "
            "`train_data` must be provided if `scorers` is provided."
        )
    if scorers > MAX_SCORERS:
        raise InvalidParameterValue(f"At most {MAX_SCORERS} scorers, got {scorers}.")


def check_record_count(records: int) -> None:
    """Checks that the evaluation dataset of a prompt optimization has neither too few nor too
    many records. Raises InvalidParameterValue."""
    if not 0 < records <= MAX_RECORDS:
        raise InvalidParameterValue(
            f"The dataset of an optimization must have 1 to {MAX_RECORDS} records, got {records}."
        )


def check_builtin(name: str) -> bool:
    """Returns whether ``name`` is the class name of a built-in judge that can judge the answer to a
    prompt. Raises InvalidParameterValue for a built-in scorer that cannot."""
    if name in _OTHER_BUILTINS:
        raise InvalidParameterValue(
            f"The built-in scorer '{name}' cannot judge the answer to a prompt on this server, "
            "which has no retrieved texts, tool calls or conversation, and needs a model."
        )
    return name in BUILTIN_SCORERS


def builtin_scorer(name: str, endpoint: str) -> dict[str, Any]:
    """Returns the JSON of a built-in judge whose model is a gateway endpoint.

    Args:
        name: the judge's class, such as ``RelevanceToQuery``; its name in the JSON is that in snake
            case.
        endpoint: the endpoint's name.
    """
    own_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    settings = {"name": own_name, "model": f"{_GATEWAY}:/{endpoint}"}
    return {
        "name": own_name,
        "builtin_scorer_class": name,
        "builtin_scorer_pydantic_data": settings,
    }


def _evolution(config: Mapping[str, Any]) -> EvolutionSettings:
    further = config.get("gepa_kwargs")
    if further is None:
        further = {}
    if not isinstance(further, dict):
        raise InvalidParameterValue("gepa_kwargs must be a JSON object")
    known = set(EvolutionSettings._fields) - {"max_metric_calls"}
    # MLflow gives these its own values, so it ignores what a caller sets.
    overridden = {"max_metric_calls", "display_progress_bar"}
    unknown = sorted(set(further) - known - overridden)
    if unknown:
        raise InvalidParameterValue(
            f"gepa_kwargs has settings that this server does not support: {unknown}. "
            f"Supported: {sorted(known)}"
        )
    given = {name: further[name] for name in known if further.get(name) is not None}
    if config.get("max_metric_calls") is not None:
        given["max_metric_calls"] = config["max_metric_calls"]
    settings = EvolutionSettings(**given)
    _check_integer("max_metric_calls", settings.max_metric_calls, 1, MAX_METRIC_CALLS)
    size = settings.reflection_minibatch_size
    _check_integer("reflection_minibatch_size", size, 1, MAX_MINIBATCH)
    _check_integer("seed", settings.seed, -(2**63), 2**63 - 1)
    if not isinstance(settings.skip_perfect_score, bool):
        raise InvalidParameterValue("skip_perfect_score must be true or false")
    if not _is_number(settings.perfect_score):
        raise InvalidParameterValue("perfect_score must be a number")
    _check_choice(
        "candidate_selection_strategy", settings.candidate_selection_strategy, _SELECTIONS
    )
    _check_choice("acceptance_criterion", settings.acceptance_criterion, _CRITERIA)
    return settings


def _lm_parameters(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise InvalidParameterValue("`lm_kwargs` must be a dictionary")
    for name, value in given.items():
        if name not in _LM_PARAMETERS:
            raise InvalidParameterValue(
                f"lm_kwargs has the parameter {_shown(name)}, which this server does not support. "
                f"Supported: {list(_LM_PARAMETERS)}"
            )
        if not _is_number(value):
            raise InvalidParameterValue(f"The parameter '{name}' of lm_kwargs must be a number")
    return dict(given)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _check_integer(name: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidParameterValue(f"{name} must be an integer from {low} to {high}")


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InvalidParameterValue(f"{name} must be one of {list(choices)}")


def _shown(value: Any) -> str:
    """Returns a value of a request for an error message: a string shortened, or the type of any
    other value."""
    return repr(value if isinstance(value, str) else type(value).__name__)[:200]
