"""OpenAI's API, at OpenAI, at Azure, and at the many providers with a compatible API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from mlcore.errors import GatewayCallFailed, InvalidParameterValue
from mlcore.providers import cache_markers, openai_answers, transport
from mlcore.providers.provider import (
    OPENAI_CHAT,
    OPENAI_EMBEDDINGS,
    OPENAI_RESPONSES,
    OPENAI_RESPONSES_COMPACT,
    Json,
    Provider,
    check_no_model,
    forwarded_headers,
)
from mlcore.providers.proxied import ProxiedRequest, RawAnswer
from mlcore.providers.token_counts import token_counts

_AZURE: Final = ("azure", "azuread")


class Compatible(Provider):
    """Calls a provider with OpenAI's protocol, at a base URL with a bearer token."""

    passthrough_paths: ClassVar[Mapping[str, str]] = {
        OPENAI_CHAT: "chat/completions",
        OPENAI_EMBEDDINGS: "embeddings",
    }
    default_base: ClassVar[str] = ""

    def chat(self, payload: Json) -> Json:
        check_no_model(payload)
        return _completion(self._ask("chat/completions", self.accepted(payload)))

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        check_no_model(payload)
        stream = transport.lines(
            self.url("chat/completions"),
            self.headers(),
            self._named(_with_usage(self.accepted(payload))),
            configured=self.configured,
            redactor=self.credential_redactor,
        )
        return (_chunk(event) for event in transport.events(stream))

    def embeddings(self, payload: Json) -> Json:
        check_no_model(payload)
        answer = self._ask("embeddings", payload)
        try:
            return openai_answers.embeddings(
                [item["embedding"] for item in answer["data"]],
                answer["model"],
                answer["usage"]["prompt_tokens"],
                answer["usage"]["total_tokens"],
            )
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise unexpected_answer(error) from None

    def passthrough(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        return transport.ask(
            self.url(self.path(action)),
            forwarded_headers(headers, self.headers()),
            self._named(payload),
            configured=self.configured,
            redactor=self.credential_redactor,
        )

    def passthrough_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        if action == OPENAI_CHAT:
            payload = _with_usage(payload)
        return transport.lines(
            self.url(self.path(action)),
            forwarded_headers(headers, self.headers()),
            self._named(payload),
            configured=self.configured,
            redactor=self.credential_redactor,
        )

    def proxy(
        self, request: ProxiedRequest, headers: Mapping[str, str]
    ) -> Iterator[Json | bytes | RawAnswer]:
        return transport.proxied(
            proxied_url(self.model.auth_config.get("api_base") or self.default_base, request.path),
            forwarded_headers(headers, self.headers()),
            request,
            configured=True,
            redactor=self.credential_redactor,
        )

    def usage(self, answer: Json) -> dict[str, int]:
        response = answer.get("response")
        if isinstance(response, dict):  # an event of a streamed response
            answer = response
        usage = answer.get("usage")
        if isinstance(usage, dict) and "input_tokens" in usage:
            return token_counts(
                usage,
                "input_tokens",
                "output_tokens",
                "total_tokens",
                "input_tokens_details.cached_tokens",
            )
        return token_counts(
            usage,
            "prompt_tokens",
            "completion_tokens",
            "total_tokens",
            "prompt_tokens_details.cached_tokens",
        )

    def accepted(self, chat: Json) -> Json:
        """Returns a chat without fields that the provider does not accept: markers of cached
        prompts."""
        return cache_markers.without_message_markers(chat)

    def url(self, path: str) -> str:
        return join_path(self.model.auth_config.get("api_base") or self.default_base, path)

    def headers(self) -> dict[str, str]:
        key = self.model.secret.get("api_key")
        return {"authorization": f"Bearer {key}"} if key else {}

    def _named(self, payload: Json) -> Json:
        return {"model": self.model.name, **payload}

    def _ask(self, path: str, payload: Json) -> Json:
        return transport.ask(
            self.url(path),
            self.headers(),
            self._named(payload),
            configured=self.configured,
            redactor=self.credential_redactor,
        )


class OpenAi(Compatible):
    """Calls OpenAI itself, or a deployment at Azure, whose URL contains the model."""

    display_name = "OpenAI"
    default_base = "https://api.openai.com/v1"
    passthrough_paths: ClassVar[Mapping[str, str]] = {
        **Compatible.passthrough_paths,
        OPENAI_RESPONSES: "responses",
        OPENAI_RESPONSES_COMPACT: "responses/compact",
    }

    @property
    def _azure(self) -> str | None:
        """The login mode (``azure``, ``azuread`` …) of a deployment at Azure; None for OpenAI."""
        if self.model.provider == "azure":
            return "azure"
        api_type = self.model.auth_config.get("api_type")
        return api_type if api_type in _AZURE else None

    def accepted(self, chat: Json) -> Json:
        is_own = self._azure is not None or not self.configured
        return cache_markers.without_markers(chat) if is_own else super().accepted(chat)

    def url(self, path: str) -> str:
        auth = self.model.auth_config
        if self._azure is None:
            return super().url(path)
        deployment = auth.get("deployment_name") or self.model.name
        base, version = auth.get("api_base"), auth.get("api_version")
        if not base or not version:
            raise InvalidParameterValue(
                "A model at Azure OpenAI needs api_base and api_version in the auth_config of its "
                "secret."
            )
        url = join_path(base, f"openai/deployments/{quote(deployment, safe='')}/{path}")
        return f"{url}{'&' if '?' in url else '?'}{urlencode({'api-version': version})}"

    def headers(self) -> dict[str, str]:
        if self._azure == "azure":
            return {"api-key": self.model.secret.get("api_key", "")}
        headers_ = super().headers()
        organization = self.model.auth_config.get("organization")
        if organization and self._azure is None:
            headers_["OpenAI-Organization"] = organization
        return headers_

    def _named(self, payload: Json) -> Json:
        return payload if self._azure else super()._named(payload)


def join_path(base: str, path: str) -> str:
    """Appends a path to a base URL, before its query."""
    parts = urlsplit(base)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{path}"))


def proxied_url(base: str, path: str) -> str:
    """Returns the URL for a request to any path of a model provider's API: the base URL with its
    last path segment (the version) replaced by the path, which may end in a query."""
    parts = urlsplit(base)
    root = parts.path.rstrip("/").rpartition("/")[0]
    path, _, query = path.partition("?")
    return urlunsplit(parts._replace(path=f"{root}/{path}", query=query))


def unexpected_answer(error: Exception) -> GatewayCallFailed:
    """Returns the error for an answer that lacks the form of the model provider's API."""
    return GatewayCallFailed(
        502, f"The provider's answer has an unexpected form ({type(error).__name__}: {error})."
    )


def _with_usage(payload: Json) -> Json:
    """Returns the streaming request with ``include_usage`` set in ``stream_options``, even if the
    caller wants no usage: the answer does not contain thinking tokens, which cost, too."""
    options = payload.get("stream_options")
    given_options = options if isinstance(options, dict) else {}
    return {**payload, "stream_options": {**given_options, "include_usage": True}}


def _completion(answer: Json) -> Json:
    try:
        return openai_answers.completion(
            answer["id"],
            answer["created"],
            answer["model"],
            [
                openai_answers.choice(
                    index,
                    choice["message"].get("content"),
                    choice["message"].get("tool_calls"),
                    choice.get("finish_reason"),
                    choice["message"]["role"],
                )
                for index, choice in enumerate(answer["choices"])
            ],
            _usage(answer.get("usage") or {}),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected_answer(error) from None


def _chunk(event: Json) -> Json:
    if "error" in event and "choices" not in event:
        failure = event["error"]
        raise GatewayCallFailed(
            502, failure.get("message") if isinstance(failure, dict) else failure
        )
    try:
        usage = event.get("usage")
        return openai_answers.chunk(
            event["id"],
            event["created"],
            event["model"],
            [
                openai_answers.delta(
                    choice["index"],
                    choice.get("finish_reason"),
                    role=choice["delta"].get("role"),
                    content=choice["delta"].get("content"),
                    tool_calls=[
                        _call_delta(call) for call in choice["delta"].get("tool_calls") or ()
                    ],
                )
                for choice in event["choices"]
            ],
            _usage(usage) if usage else None,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected_answer(error) from None


def _call_delta(call: Json) -> Json:
    function = call.get("function") or {}
    return openai_answers.call_delta(
        call["index"],
        call_id=call.get("id"),
        call_type=call.get("type"),
        name=function.get("name"),
        arguments=function.get("arguments"),
    )


def _usage(counts: Mapping[str, Any]) -> Json:
    known = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details")
    more = {name: value for name, value in counts.items() if name not in known}
    details = counts.get("prompt_tokens_details")
    if details:
        more = {"prompt_tokens_details": {"cached_tokens": None, **details}, **more}
    prompt, completion, total = (counts.get(name) for name in known[:3])
    return openai_answers.usage(prompt, completion, total, more=more)
