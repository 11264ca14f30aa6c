"""Rules about scorers, which judge traces, and about their JSON texts. Does not run scorers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mlcore.errors import InvalidParameterValue
from mlcore.limits.evaluation.code_scorers import code_is_allowed
from mlcore.limits.shared_checks import check_length
from mlcore.wire.json_text import load_json, parse_json_text

_CODE_REFUSED: Final = (
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
_NO_SOURCE: Final = (
    "Scorer '{}' has no source code: the body of its function is empty "
    "or could not be read. Common causes: a lambda (use `def` instead), a body with only a "
    "docstring (add the scoring code), an `async def` function (not supported), or a "
    "function defined with `exec`, in a REPL, or in a file that changed after it was "
    "imported (define it in a file or notebook cell, and register it before you change "
    "the file)."
)
_DESTINATIONS: Final = frozenset(
    ("api_base", "base_url", "model_list", "fallbacks", "custom_llm_provider")
)


MAX_NAME_LENGTH: Final = 256
"""As in MLflow's database. All scorers of an experiment are listed in one answer."""


MAX_SERIALIZED_BYTES: Final = 65_535
"""As in MLflow's database on MySQL (a column of type TEXT)."""


def check_size(serialized_scorer: str) -> None:
    """Checks the size of a scorer that is to be registered. Larger ones that are stored already
    stay usable."""
    size = len(serialized_scorer.encode(errors="surrogatepass"))
    if size > MAX_SERIALIZED_BYTES:
        raise InvalidParameterValue(
            f"serialized_scorer has {size} bytes; at most {MAX_SERIALIZED_BYTES} are allowed, "
            "because all scorers of an experiment are listed in one answer."
        )


def check_name(name: str) -> None:
    if not name.strip():
        raise InvalidParameterValue("Scorer name cannot be empty or contain only whitespace.")
    check_length("name", MAX_NAME_LENGTH, name)


def check_payload(serialized_scorer: str) -> dict[str, Any]:
    """Parses the JSON text of a scorer and returns its object. Raises InvalidParameterValue if it
    is not a JSON object, holds code although MLFLOW_SERVER_ENABLE_CUSTOM_SCORERS is off, holds
    empty code, or sets options that choose to which server a scorer of another library sends
    requests."""
    try:
        data = parse_json_text(serialized_scorer)
    except ValueError:
        raise InvalidParameterValue("serialized_scorer must be valid JSON") from None
    if not code_is_allowed() and any(
        part.get("call_source") is not None for part in _objects(data)
    ):
        raise InvalidParameterValue(_CODE_REFUSED)
    if not isinstance(data, dict):
        raise InvalidParameterValue("serialized_scorer must be the JSON text of an object")
    for part in _objects(data):
        source = part.get("call_source")
        if isinstance(source, str) and not source.strip():
            name = part.get("name") or part.get("original_func_name") or "<unnamed>"
            raise InvalidParameterValue(_NO_SOURCE.format(name))
    for part in _objects(data):
        third_party = part.get("third_party_scorer_data")
        if isinstance(third_party, dict):
            _check_destinations(third_party.get("kwargs"))
    return data


def name_in_text(serialized_scorer: Any) -> str | None:
    """Returns the name in a scorer's JSON text; None if the text has no name or is not valid
    JSON."""
    try:
        name = load_json(serialized_scorer)["name"]
    except (ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and name else None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields all JSON objects in a value, at any depth."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _option_names(value: Any) -> Iterator[str]:
    """Yields the keys of all objects in a value, at any depth, and the first items of pairs in
    lists, which ``dict`` would turn into keys."""
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
    forbidden = sorted(_DESTINATIONS.intersection(_option_names(arguments)))
    if forbidden:
        raise InvalidParameterValue(
            f"third_party_scorer_data.kwargs must not contain {', '.join(map(repr, forbidden))}: "
            "these options choose where the scorer's LLM client sends requests. Configure "
            "the judge endpoint on the server instead, for example through a gateway "
            "endpoint ('gateway:/<name>') or the provider's environment variables."
        )
