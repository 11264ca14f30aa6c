"""Lists the providers and models that the gateway offers. The data is shipped with the function;
no request goes to the internet."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, Final

from gateway import messages as m
from mlcore import errors
from mlcore.http import Request

MODELS_FILE: Final = Path(__file__).with_name("models.json")
PROVIDERS_FILE: Final = Path(__file__).with_name("providers.json")

CAPABILITIES: Final = (
    "supports_function_calling",
    "supports_vision",
    "supports_reasoning",
    "supports_prompt_caching",
    "supports_response_schema",
)
LIMITS: Final = (
    "max_input_tokens",
    "max_output_tokens",
    "input_cost_per_token",
    "output_cost_per_token",
    "modality",
    "deprecation_date",
    "last_updated_at",
)

_MODES: Final = ("chat", "completion", "embedding", "evaluation", "responses", None)
_EXCLUDED_PROVIDER: Final = "bedrock_converse"
_VERTEX: Final = "vertex_ai"
_NO_OWN_KEYS: Final = {"env_credentials_available": False}
_ALIASES: Final = {"amazon-bedrock": "bedrock", "databricks-model-serving": "databricks"}


def list_providers(message: m.EmptyRequest, request: Request) -> dict[str, Any]:
    return {
        "providers": sorted({_provider(name) for name in _models() if name != _EXCLUDED_PROVIDER})
    }


def list_models(message: m.ProviderRequest, request: Request) -> dict[str, Any]:
    """Returns the known models of one model provider, or of all if the request names none, without
    fine-tuned ones and those for other tasks (:data:`_MODES`), such as images."""
    by_name: dict[tuple[str, str], dict[str, Any]] = {}
    for name, models in _models().items():
        provider = _provider(name)
        if name == _EXCLUDED_PROVIDER or message.provider not in ("", provider):
            continue
        for full_name, properties in models.items():
            model = full_name.removeprefix(f"{provider}/")
            mode = properties[0] if properties else None
            if mode in _MODES and not model.startswith("ft:"):
                by_name.setdefault((provider, model), _model(model, provider, properties))
    return {"models": list(by_name.values())}


def provider_config(message: m.ProviderRequest, request: Request) -> dict[str, Any]:
    """Returns which credentials a model provider takes. Unknown providers take an API key. Raises
    InvalidParameterValue if the request names none.

    ``env_credentials_available`` is false for all: every endpoint needs a stored secret. The server
    reads no API key from its environment; even ``default_chain`` is a setting of a secret.
    """
    if not message.provider:
        raise errors.InvalidParameterValue("Provider parameter is required")
    provider = message.provider.lower()
    provider = _ALIASES.get(provider, provider)
    current = _providers().get("bedrock" if provider == _EXCLUDED_PROVIDER else provider)
    if current is not None:
        return {**current, **_NO_OWN_KEYS}
    title = provider.title()
    return {
        "auth_modes": [
            {
                "mode": "api_key",
                "display_name": "API Key",
                "description": f"Use {title} API Key",
                "secret_fields": [_field("api_key", f"{title} API Key", required=True)],
                "config_fields": [_field("api_base", f"{title} API Base URL", required=False)],
            }
        ],
        "default_mode": "api_key",
        **_NO_OWN_KEYS,
    }


def _field(name: str, description: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "type": "string", "description": description, "required": required}


def _model(name: str, provider: str, properties: list[Any]) -> dict[str, Any]:
    """Returns the JSON of one model.

    Args:
        properties: the model's mode, its capabilities as a bit mask, and its limits; trailing nulls
            are left out.
    """
    padded = properties + [None] * (2 + len(LIMITS) - len(properties))
    mode, bits, limits = padded[0], padded[1], padded[2:]
    return {
        "model": name,
        "provider": provider,
        "mode": mode,
        **{field: bool((bits or 0) >> bit & 1) for bit, field in enumerate(CAPABILITIES)},
        **dict(zip(LIMITS, limits, strict=True)),
    }


def _provider(name: str) -> str:
    """Returns the provider's name; all variants of Vertex AI count as ``vertex_ai``."""
    return _VERTEX if name.startswith(f"{_VERTEX}-") else name


@functools.cache
def _models() -> dict[str, dict[str, list[Any]]]:
    """Returns the properties of models by provider and model name, in the form that
    ``operate/model_list.py`` writes."""
    providers: dict[str, dict[str, list[Any]]] = json.loads(MODELS_FILE.read_bytes())["providers"]
    return providers


@functools.cache
def _providers() -> dict[str, dict[str, Any]]:
    providers: dict[str, dict[str, Any]] = json.loads(PROVIDERS_FILE.read_bytes())
    return providers
