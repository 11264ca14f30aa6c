"""The interface of model providers. The methods of the base class refuse the calls; a provider
overrides those that it supports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

from mlcore.errors import GatewayCallFailed
from mlcore.providers.credential_redactor import CredentialRedactor
from mlcore.providers.model import Model
from mlcore.providers.proxied import BinaryEvent, CountedAnswer, ProxiedRequest, RawAnswer
from mlcore.providers.token_counts import token_counts_of

Json = dict[str, Any]

OPENAI_CHAT: Final = "openai_chat"
OPENAI_EMBEDDINGS: Final = "openai_embeddings"
OPENAI_RESPONSES: Final = "openai_responses"
OPENAI_RESPONSES_COMPACT: Final = "openai_responses_compact"
ANTHROPIC_MESSAGES: Final = "anthropic_messages"
ANTHROPIC_COUNT_TOKENS: Final = "anthropic_count_tokens"
GEMINI_GENERATE_CONTENT: Final = "gemini_generate_content"
GEMINI_STREAM_GENERATE_CONTENT: Final = "gemini_stream_generate_content"

ROUTES: Final[Mapping[str, str]] = {
    OPENAI_CHAT: "/openai/v1/chat/completions",
    OPENAI_EMBEDDINGS: "/openai/v1/embeddings",
    OPENAI_RESPONSES: "/openai/v1/responses",
    OPENAI_RESPONSES_COMPACT: "/openai/v1/responses/compact",
    ANTHROPIC_MESSAGES: "/anthropic/v1/messages",
    ANTHROPIC_COUNT_TOKENS: "/anthropic/v1/messages/count_tokens",
    GEMINI_GENERATE_CONTENT: "/gemini/v1beta/models/{endpoint_name}:generateContent",
    GEMINI_STREAM_GENERATE_CONTENT: "/gemini/v1beta/models/{endpoint_name}:streamGenerateContent",
}
"""Paths of passthrough requests below ``/gateway``, by action."""

LOGINS: Final = frozenset(("authorization", "x-api-key", "x-goog-api-key", "api-key"))
"""Headers with credentials. Those of a caller are sent to a provider only if the caller is a
program of :data:`_SUBSCRIPTION_AGENTS`."""

_SUBSCRIPTION_AGENTS: Final = ("claude-cli", "codex", "geminicli")
"""Parts of the ``User-Agent`` of programs that send the credentials of their user's own
subscription (Claude Code, Codex and Gemini CLI), as in MLflow's gateway."""


_OWN_PREFIXES: Final = ("x-amz", "x-amzn", "x-forwarded-", "cloudfront-", "via", "x-mlflow-")
"""Prefixes of the names of headers that are for this server or added on the way to it. One of them
has the secret word of CloudFront's requests, with which a provider could bypass CloudFront."""

_NOT_FORWARDED: Final = frozenset(
    (
        *("cookie", "forwarded", "x-real-ip"),
        *("x-http-method", "x-http-method-override", "x-method-override"),
    )
)
"""Headers about the connection between the caller and this server; and headers that override the
method, with which a POST could delete data that its caller may not delete."""


class Provider:
    """Calls one AI model at its provider. Chats, chunks of streamed completions, and embeddings
    have the form of OpenAI's API."""

    display_name: ClassVar[str] = ""
    passthrough_paths: ClassVar[Mapping[str, str]] = {}
    """The provider's own paths, by passthrough action."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.spent: dict[str, int] = {}
        """Token counts of what the provider has done for the call so far, if the call sends several
        requests, of which a later one may fail."""
        self.redacted: Callable[[Json], Json] = _as_it_is
        """Redacts a chat that was translated to the provider's form, which may have joined
        texts."""

    @cached_property
    def credential_redactor(self) -> CredentialRedactor:
        """The object that replaces the model's credentials where a provider repeats them."""
        return CredentialRedactor(self._credentials())

    def _credentials(self) -> Iterable[str]:
        """Returns all values that are secret in the requests to the model."""
        return self.model.secret.values()

    @property
    def configured(self) -> bool:
        """Whether the model's secret sets the provider's address, which must then be checked to be
        public."""
        return bool(self.model.auth_config.get("api_base"))

    def chat(self, payload: Json) -> Json:
        """Completes a chat and returns the completion. ``payload`` is the chat without
        ``model``."""
        raise self._unsupported("The chat route is")

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        """Completes a chat and yields the chunks of the completion; the last ones hold the token
        usage."""
        raise self._unsupported("The chat streaming route is")

    def embeddings(self, payload: Json) -> Json:
        raise self._unsupported("The embeddings route is")

    def passthrough(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        """Sends a request in the provider's own form and returns the provider's own answer.

        Args:
            action: a key of ``passthrough_paths``.
            headers: the caller's headers; :func:`forwarded_headers` says which are forwarded.
        """
        raise self.unsupported_action(action)

    def passthrough_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        """Sends a request as :meth:`passthrough` does, and yields the lines of the streamed
        answer."""
        raise self.unsupported_action(action)

    def proxy(
        self, request: ProxiedRequest, headers: Mapping[str, str]
    ) -> Iterator[Json | bytes | RawAnswer | CountedAnswer | BinaryEvent]:
        """Sends a request to any path of the provider, with the body as it is. Yields the JSON
        answer, the lines or events of a stream, or an answer of another type. The path is below the
        provider's root, which is its address without the version; for example ``v1/messages``.
        """
        raise self._unsupported("The proxy endpoint is")

    def usage(self, answer: Json) -> dict[str, int]:
        """Returns, by MLflow's names, the token counts of an answer in the model provider's own
        form, or of one event of such a streamed answer. Empty unless a subclass overrides this."""
        return {}

    def chat_usage(self, answer: Json) -> dict[str, int]:
        """Returns the token counts in a completion, chunk or embeddings answer of OpenAI's form, by
        MLflow's names."""
        return token_counts_of(answer)

    def path(self, action: str) -> str:
        """Returns the path in this model provider's API for a passthrough action. Raises
        GatewayCallFailed if the provider does not have the action."""
        try:
            return self.passthrough_paths[action]
        except KeyError:
            raise self.unsupported_action(action) from None

    def unsupported_action(self, action: str) -> GatewayCallFailed:
        """Returns the error for a passthrough route that this model provider does not support."""
        route = ROUTES[action]
        if not self.passthrough_paths:
            return GatewayCallFailed(
                501,
                f"The passthrough route '{route}' is not implemented for {self.display_name} "
                "models.",
            )
        supported = ", ".join(
            f"/gateway{ROUTES[known]} (provider_path: {path})"
            for known, path in self.passthrough_paths.items()
        )
        return GatewayCallFailed(
            400,
            f"Unsupported passthrough endpoint '{route}' for {self.display_name} provider. "
            f"Supported endpoints: {supported}",
        )

    def _unsupported(self, subject: str) -> GatewayCallFailed:
        return GatewayCallFailed(501, f"{subject} not implemented for {self.display_name} models.")


def _as_it_is(request: Json) -> Json:
    return request


def forwarded_headers(headers: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers to send to the provider: those of ``own`` (the headers with the server's
    credentials), and the caller's other headers, without credentials, without those that
    ``Connection`` lists, and without those that are for this server. If the caller is a program of
    :data:`_SUBSCRIPTION_AGENTS` and sends credentials, these are sent instead of the server's."""
    listed = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    headers = {name: value for name, value in headers.items() if name.lower() not in listed}
    credentials = _callers_credentials(headers)
    if credentials:
        own = {name: value for name, value in own.items() if name.lower() not in LOGINS}
    excluded = {name.lower() for name in own} | _NOT_FORWARDED | (LOGINS - credentials)
    forwarded = {
        name: value
        for name, value in headers.items()
        if name.lower() not in excluded and not name.lower().startswith(_OWN_PREFIXES)
    }
    return {**forwarded, **own}


def brings_credentials(headers: Mapping[str, str]) -> bool:
    """Whether :func:`forwarded_headers` sends the caller's credentials, so that the provider's
    answer depends on the caller's own subscription. Ignores that ``Connection`` may list them."""
    return bool(_callers_credentials(headers))


def _callers_credentials(headers: Mapping[str, str]) -> frozenset[str]:
    """Returns the names of the caller's headers whose credentials are sent to the provider."""
    agent = headers.get("user-agent", "").lower()
    if any(known in agent for known in _SUBSCRIPTION_AGENTS):
        return LOGINS & headers.keys()
    return frozenset()


def check_no_model(payload: Json) -> None:
    """Checks that a request names no model, because the endpoint chooses it. Raises
    GatewayCallFailed (422) otherwise."""
    if "model" in payload:
        raise GatewayCallFailed(
            422,
            "The parameter 'model' is not permitted to be passed. The route being queried already "
            "defines a model instance.",
        )
