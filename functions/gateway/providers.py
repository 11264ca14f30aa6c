"""Which providers and models the gateway offers, from data that ships with the function: nobody is
asked over the internet."""

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
_LEFT_OUT: Final = "bedrock_converse"
_VERTEX: Final = "vertex_ai"
_ALIASES: Final = {"amazon-bedrock": "bedrock", "databricks-model-serving": "databricks"}


def list_providers(message: m.Nothing, request: Request) -> dict[str, Any]:
    return {"providers": sorted({_provider(name) for name in _models() if name != _LEFT_OUT})}


def list_models(message: m.OfProvider, request: Request) -> dict[str, Any]:
    """Of one provider, or of all."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, models in _models().items():
        provider = _provider(name)
        if name == _LEFT_OUT or message.provider not in ("", provider):
            continue
        for full_name, said in models.items():
            model = full_name.removeprefix(f"{provider}/")
            mode = said[0] if said else None
            if mode in _MODES and not model.startswith("ft:"):
                found.setdefault((provider, model), _model(model, provider, said))
    return {"models": list(found.values())}


def provider_config(message: m.OfProvider, request: Request) -> dict[str, Any]:
    """Which credentials a provider takes; a key, where nothing else is known of it."""
    if not message.provider:
        raise errors.InvalidParameterValue("Provider parameter is required")
    provider = message.provider.lower()
    provider = _ALIASES.get(provider, provider)
    known = _providers().get("bedrock" if provider == _LEFT_OUT else provider)
    if known is not None:
        return known
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
    }


def _field(name: str, description: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "type": "string", "description": description, "required": required}


def _model(name: str, provider: str, said: list[Any]) -> dict[str, Any]:
    whole = said + [None] * (2 + len(LIMITS) - len(said))
    mode, bits, limits = whole[0], whole[1], whole[2:]
    return {
        "model": name,
        "provider": provider,
        "mode": mode,
        **{field: bool((bits or 0) >> at & 1) for at, field in enumerate(CAPABILITIES)},
        **dict(zip(LIMITS, limits, strict=True)),
    }


def _provider(name: str) -> str:
    """Variants of Vertex AI are one provider."""
    return _VERTEX if name.startswith(f"{_VERTEX}-") else name


@functools.cache
def _models() -> dict[str, dict[str, list[Any]]]:
    """By provider and name: see ``operate/model_list.py``."""
    providers: dict[str, dict[str, list[Any]]] = json.loads(MODELS_FILE.read_bytes())["providers"]
    return providers


@functools.cache
def _providers() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(PROVIDERS_FILE.read_bytes())
    return found
