"""Finds the class that calls a model provider, by the provider's name."""

from __future__ import annotations

from typing import Final

from mlcore.errors import GatewayCallFailed, InvalidParameterValue
from mlcore.providers.anthropic import Anthropic
from mlcore.providers.bedrock import Bedrock
from mlcore.providers.gemini import Gemini
from mlcore.providers.model import Model
from mlcore.providers.openai import Compatible, OpenAi
from mlcore.providers.provider import Provider


class Groq(Compatible):
    display_name = "Groq"
    default_base = "https://api.groq.com/openai/v1"


class DeepSeek(Compatible):
    display_name = "DeepSeek"
    default_base = "https://api.deepseek.com/v1"


class XAi(Compatible):
    display_name = "xAI"
    default_base = "https://api.x.ai/v1"


class OpenRouter(Compatible):
    display_name = "OpenRouter"
    default_base = "https://openrouter.ai/api/v1"


class Ollama(Compatible):
    display_name = "Ollama"
    default_base = "http://localhost:11434/v1"


class Mistral(Compatible):
    display_name = "Mistral"
    default_base = "https://api.mistral.ai/v1"


class TogetherAi(Compatible):
    display_name = "TogetherAI"
    default_base = "https://api.together.xyz/v1"


class Other(Compatible):
    """Any model provider that has no class of its own here: it is called by OpenAI's protocol, at
    the ``api_base`` in the ``auth_config`` of the model's secret."""

    display_name = "OpenAI-compatible"

    def url(self, path: str) -> str:
        if not self.configured:
            raise InvalidParameterValue(
                f"Models of the provider '{self.model.provider}' are called by OpenAI's protocol, "
                "so the auth_config of their secret must have an api_base."
            )
        return super().url(path)


_PROVIDERS: Final[dict[str, type[Provider]]] = {
    "openai": OpenAi,
    "azure": OpenAi,
    "anthropic": Anthropic,
    "bedrock": Bedrock,
    "bedrock_converse": Bedrock,
    "amazon-bedrock": Bedrock,
    "gemini": Gemini,
    "groq": Groq,
    "deepseek": DeepSeek,
    "xai": XAi,
    "openrouter": OpenRouter,
    "ollama": Ollama,
    "mistral": Mistral,
    "togetherai": TogetherAi,
    "together_ai": TogetherAi,
}
_UNSUPPORTED: Final = frozenset(("databricks", "databricks-model-serving", "vertex_ai", "typesafe"))
"""Providers that need a login or signature of their own kind."""


def has_address(provider: str) -> bool:
    """Whether this model provider has a class of its own here. Most of these need no ``api_base``
    in their secret; Azure does, and so do all providers without a class."""
    return provider in _PROVIDERS


def provider_of(model: Model) -> Provider:
    """Returns the provider object that calls this model. Raises GatewayCallFailed (501) if this
    server cannot call models of that provider."""
    if model.provider in _UNSUPPORTED:
        raise GatewayCallFailed(
            501, f"Models of the provider '{model.provider}' cannot be called through this server."
        )
    return _PROVIDERS.get(model.provider, Other)(model)
