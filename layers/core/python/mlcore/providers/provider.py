"""What every provider can be asked, and who says no when one cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from mlcore.errors import GatewayCallFailed
from mlcore.providers.model import Model

Json = dict[str, Any]

OPENAI_CHAT: Final = "openai_chat"
OPENAI_EMBEDDINGS: Final = "openai_embeddings"
OPENAI_RESPONSES: Final = "openai_responses"
OPENAI_RESPONSES_COMPACT: Final = "openai_responses_compact"
ANTHROPIC_MESSAGES: Final = "anthropic_messages"
GEMINI_GENERATE_CONTENT: Final = "gemini_generate_content"
GEMINI_STREAM_GENERATE_CONTENT: Final = "gemini_stream_generate_content"

ROUTES: Final[Mapping[str, str]] = {
    OPENAI_CHAT: "/openai/v1/chat/completions",
    OPENAI_EMBEDDINGS: "/openai/v1/embeddings",
    OPENAI_RESPONSES: "/openai/v1/responses",
    OPENAI_RESPONSES_COMPACT: "/openai/v1/responses/compact",
    ANTHROPIC_MESSAGES: "/anthropic/v1/messages",
    GEMINI_GENERATE_CONTENT: "/gemini/v1beta/models/{endpoint_name}:generateContent",
    GEMINI_STREAM_GENERATE_CONTENT: "/gemini/v1beta/models/{endpoint_name}:streamGenerateContent",
}
"""Below ``/gateway``: what is passed on to a provider as it is."""

_CLIENT_AUTH: Final = frozenset(("authorization", "x-api-key", "x-goog-api-key", "api-key"))
"""Headers that hold a caller's credentials, which no provider must see."""


class Provider:
    """One model at its provider. Chats, their chunks and embeddings are OpenAI's."""

    display_name: ClassVar[str] = ""
    passed_on: ClassVar[Mapping[str, str]] = {}
    """The provider's paths by the actions that it takes as they are."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @property
    def configured(self) -> bool:
        """Whether somebody wrote down where the provider is."""
        return bool(self.model.auth_config.get("api_base"))

    def chat(self, payload: Json) -> Json:
        """A whole completion, of a request that has no ``model``."""
        raise self._unable("The chat route is")

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        """Its chunks; the last ones tell the usage."""
        raise self._unable("The chat streaming route is")

    def embeddings(self, payload: Json) -> Json:
        raise self._unable("The embeddings route is")

    def pass_on(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        """The provider's own answer to a request in its own form.

        Args:
            headers: the caller's, of which the provider gets what holds no credential.
        """
        raise self.refused(action)

    def pass_on_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        """As :meth:`pass_on`, line by line."""
        raise self.refused(action)

    def usage(self, answer: Json) -> dict[str, int]:
        """What a provider's own answer, or one event of a stream of it, tells of tokens, by
        MLflow's names."""
        return {}

    def path(self, action: str) -> str:
        """Raises GatewayCallFailed: the provider has no such thing."""
        try:
            return self.passed_on[action]
        except KeyError:
            raise self.refused(action) from None

    def refused(self, action: str) -> GatewayCallFailed:
        route = ROUTES[action]
        if not self.passed_on:
            return GatewayCallFailed(
                501,
                f"The passthrough route '{route}' is not implemented for {self.display_name} "
                "models.",
            )
        supported = ", ".join(
            f"/gateway{ROUTES[known]} (provider_path: {path})"
            for known, path in self.passed_on.items()
        )
        return GatewayCallFailed(
            400,
            f"Unsupported passthrough endpoint '{route}' for {self.display_name} provider. "
            f"Supported endpoints: {supported}",
        )

    def _unable(self, what: str) -> GatewayCallFailed:
        return GatewayCallFailed(501, f"{what} not implemented for {self.display_name} models.")


def foreign(headers: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The caller's headers without credentials, and over them the provider's own."""
    taken = {name.lower() for name in own} | _CLIENT_AUTH | {"cookie", "x-mlflow-workspace"}
    passed = {
        name: value
        for name, value in headers.items()
        if name.lower() not in taken
        and not name.lower().startswith(("x-amz", "x-amzn", "x-forwarded-", "cloudfront-", "via"))
    }
    return {**passed, **own}


def check_no_model(payload: Json) -> None:
    """The endpoint says which model it is. Raises GatewayCallFailed."""
    if "model" in payload:
        raise GatewayCallFailed(
            422,
            "The parameter 'model' is not permitted to be passed. The route being queried already "
            "defines a model instance.",
        )


def counted(
    usage: Any, input_key: str, output_key: str, total_key: str = "", cached: str = ""
) -> dict[str, int]:
    """Tokens by MLflow's names, of a provider's.

    Args:
        cached: where those read from a cache are, with a dot for what is nested.
    """
    if not isinstance(usage, dict):
        return {}
    outer, _, inner = cached.partition(".")
    read = usage.get(outer)
    found = {
        "input_tokens": usage.get(input_key),
        "output_tokens": usage.get(output_key),
        "total_tokens": usage.get(total_key),
        "cache_read_input_tokens": (
            (read.get(inner) if isinstance(read, dict) else None) if inner else read
        ),
    }
    told = {name: count for name, count in found.items() if isinstance(count, int)}
    return with_total(told)


def with_total(usage: dict[str, int]) -> dict[str, int]:
    """The same, with a sum where it can be made."""
    if "total_tokens" not in usage and {"input_tokens", "output_tokens"} <= usage.keys():
        usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    return usage
