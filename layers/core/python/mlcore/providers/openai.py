"""OpenAI's API: that of OpenAI itself, of Azure, and of the many that speak it under another
address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from mlcore.errors import GatewayCallFailed, InvalidParameterValue
from mlcore.providers import completions, transport
from mlcore.providers.provider import (
    OPENAI_CHAT,
    OPENAI_EMBEDDINGS,
    OPENAI_RESPONSES,
    OPENAI_RESPONSES_COMPACT,
    Json,
    Provider,
    check_no_model,
    counted,
    foreign,
)

_AZURE: Final = ("azure", "azuread")


class Compatible(Provider):
    """Whoever speaks OpenAI's protocol: the address below which it is, and a bearer token."""

    passed_on: ClassVar[Mapping[str, str]] = {
        OPENAI_CHAT: "chat/completions",
        OPENAI_EMBEDDINGS: "embeddings",
    }
    default_base: ClassVar[str] = ""

    def chat(self, payload: Json) -> Json:
        check_no_model(payload)
        return _completion(self._ask("chat/completions", payload))

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        check_no_model(payload)
        stream = transport.lines(
            self.url("chat/completions"),
            self.headers(),
            self._named(_telling_usage(payload)),
            configured=self.configured,
        )
        return (_chunk(event) for event in transport.events(stream))

    def embeddings(self, payload: Json) -> Json:
        check_no_model(payload)
        answer = self._ask("embeddings", payload)
        try:
            return completions.embedded(
                [one["embedding"] for one in answer["data"]],
                answer["model"],
                answer["usage"]["prompt_tokens"],
                answer["usage"]["total_tokens"],
            )
        except (KeyError, TypeError, IndexError) as error:
            raise misunderstood(error) from None

    def pass_on(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        return transport.ask(
            self.url(self.path(action)),
            foreign(headers, self.headers()),
            self._named(payload),
            configured=self.configured,
        )

    def pass_on_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        if action == OPENAI_CHAT:
            payload = _telling_usage(payload)
        return transport.lines(
            self.url(self.path(action)),
            foreign(headers, self.headers()),
            self._named(payload),
            configured=self.configured,
        )

    def usage(self, answer: Json) -> dict[str, int]:
        response = answer.get("response")
        if isinstance(response, dict):  # an event of a stream of responses
            answer = response
        usage = answer.get("usage")
        if isinstance(usage, dict) and "input_tokens" in usage:
            return counted(
                usage,
                "input_tokens",
                "output_tokens",
                "total_tokens",
                "input_tokens_details.cached_tokens",
            )
        return counted(
            usage,
            "prompt_tokens",
            "completion_tokens",
            "total_tokens",
            "prompt_tokens_details.cached_tokens",
        )

    def url(self, path: str) -> str:
        return below(self.model.auth_config.get("api_base") or self.default_base, path)

    def headers(self) -> dict[str, str]:
        key = self.model.secret.get("api_key")
        return {"authorization": f"Bearer {key}"} if key else {}

    def _named(self, payload: Json) -> Json:
        return {"model": self.model.name, **payload}

    def _ask(self, path: str, payload: Json) -> Json:
        return transport.ask(
            self.url(path), self.headers(), self._named(payload), configured=self.configured
        )


class OpenAi(Compatible):
    """OpenAI itself, or a deployment at Azure, whose URL names the model."""

    display_name = "OpenAI"
    default_base = "https://api.openai.com/v1"
    passed_on: ClassVar[Mapping[str, str]] = {
        **Compatible.passed_on,
        OPENAI_RESPONSES: "responses",
        OPENAI_RESPONSES_COMPACT: "responses/compact",
    }

    @property
    def _azure(self) -> str | None:
        """How a deployment at Azure logs in; None for OpenAI."""
        if self.model.provider == "azure":
            return "azure"
        said = self.model.auth_config.get("api_type")
        return said if said in _AZURE else None

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
        url = below(base, f"openai/deployments/{quote(deployment, safe='')}/{path}")
        return f"{url}{'&' if '?' in url else '?'}{urlencode({'api-version': version})}"

    def headers(self) -> dict[str, str]:
        if self._azure == "azure":
            return {"api-key": self.model.secret.get("api_key", "")}
        made = super().headers()
        organization = self.model.auth_config.get("organization")
        if organization and self._azure is None:
            made["OpenAI-Organization"] = organization
        return made

    def _named(self, payload: Json) -> Json:
        return payload if self._azure else super()._named(payload)


def below(base: str, path: str) -> str:
    """A path below a base URL, whose query stays at the end."""
    parts = urlsplit(base)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{path}"))


def misunderstood(error: Exception) -> GatewayCallFailed:
    """What a provider answered is not what its API promises."""
    return GatewayCallFailed(
        502, f"The provider's answer is not understood ({type(error).__name__}: {error})."
    )


def _telling_usage(payload: Json) -> Json:
    """The request of a stream that ends with its usage, unless it says that it shall not."""
    options = payload.get("stream_options")
    told = options if isinstance(options, dict) else {}
    return {**payload, "stream_options": {"include_usage": True, **told}}


def _completion(answer: Json) -> Json:
    try:
        return completions.completion(
            answer["id"],
            answer["created"],
            answer["model"],
            [
                completions.choice(
                    index,
                    one["message"].get("content"),
                    one["message"].get("tool_calls"),
                    one.get("finish_reason"),
                    one["message"]["role"],
                )
                for index, one in enumerate(answer["choices"])
            ],
            _usage(answer.get("usage") or {}),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise misunderstood(error) from None


def _chunk(event: Json) -> Json:
    if "error" in event and "choices" not in event:
        told = event["error"]
        raise GatewayCallFailed(502, told.get("message") if isinstance(told, dict) else told)
    try:
        usage = event.get("usage")
        return completions.chunk(
            event["id"],
            event["created"],
            event["model"],
            [
                completions.delta(
                    one["index"],
                    one.get("finish_reason"),
                    role=one["delta"].get("role"),
                    content=one["delta"].get("content"),
                    tool_calls=[_call_delta(call) for call in one["delta"].get("tool_calls") or ()],
                )
                for one in event["choices"]
            ],
            _usage(usage) if usage else None,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise misunderstood(error) from None


def _call_delta(call: Json) -> Json:
    function = call.get("function") or {}
    return completions.call_delta(
        call["index"],
        call_id=call.get("id"),
        kind=call.get("type"),
        name=function.get("name"),
        arguments=function.get("arguments"),
    )


def _usage(told: Mapping[str, Any]) -> Json:
    known = ("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details")
    more = {name: value for name, value in told.items() if name not in known}
    details = told.get("prompt_tokens_details")
    if details:
        more = {"prompt_tokens_details": {"cached_tokens": None, **details}, **more}
    prompt, completion, total = (told.get(name) for name in known[:3])
    return completions.usage(prompt, completion, total, more=more)
