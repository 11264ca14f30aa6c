"""Models at Amazon Bedrock: chats by its Converse API; embeddings and Anthropic's Messages API by
InvokeModel; and Bedrock's own operations for AWS's SDKs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from typing import ClassVar, Final, TypeVar

from mlcore.errors import GatewayCallFailed
from mlcore.providers import (
    bedrock_embeddings,
    bedrock_messages,
    bedrock_usage,
    converse,
    event_stream,
    transport,
)
from mlcore.providers.bedrock_login import BedrockLogin
from mlcore.providers.provider import (
    ANTHROPIC_COUNT_TOKENS,
    ANTHROPIC_MESSAGES,
    Json,
    Provider,
    check_no_model,
)
from mlcore.providers.proxied import ProxiedRequest

T = TypeVar("T")

_INVOKE: Final = "invoke"
_INVOKE_STREAM: Final = "invoke-with-response-stream"


class Bedrock(Provider):
    """A model at Amazon Bedrock. Its URL is derived from the region; ``api_base`` is ignored, as on
    MLflow's server."""

    display_name = "Amazon Bedrock"
    passthrough_paths: ClassVar[Mapping[str, str]] = {
        ANTHROPIC_MESSAGES: "model/{model}/invoke",
        ANTHROPIC_COUNT_TOKENS: "model/{model}/count-tokens",
    }

    @property
    def configured(self) -> bool:
        return False

    def chat(self, payload: Json) -> Json:
        check_no_model(payload)
        answer, _ = self._ask("converse", converse.request_of(payload))
        return converse.completion_of(answer, self.model.name)

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        check_no_model(payload)
        events = self._events("converse-stream", converse.request_of(payload))
        return converse.chunks_of(events, self.model.name)

    def embeddings(self, payload: Json) -> Json:
        check_no_model(payload)

        def spend(tokens: int) -> None:
            self.spent = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}

        return bedrock_embeddings.embed(
            self.model.name, payload, lambda request: self._ask(_INVOKE, request), spend
        )

    def passthrough(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        self._check_action(action)

        def ask(request: Json) -> Json:
            if action == ANTHROPIC_MESSAGES:
                return self._ask(_INVOKE, request)[0]
            answer, _ = self._ask(
                "count-tokens",
                bedrock_messages.count_request(request),
                bedrock_messages.foundation_model(self.model.name),
            )
            return bedrock_messages.count_answer(answer)

        with bedrock_messages.errors():
            return _accepted(payload, headers, ask)

    def passthrough_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        self._check_action(action)

        def begin(request: Json) -> tuple[bytes, Generator[bytes]]:
            lines = bedrock_messages.lines_of(self._events(_INVOKE_STREAM, request))
            return next(lines, b""), lines

        with bedrock_messages.errors():
            first, rest = _accepted(payload, headers, begin)
            with closing(rest):
                yield first
                yield from rest

    def usage(self, answer: Json) -> dict[str, int]:
        return bedrock_usage.counts_of(answer)

    def _credentials(self) -> Iterable[str]:
        return self._login.credentials()

    @cached_property
    def _login(self) -> BedrockLogin:
        return BedrockLogin(self.model)

    def _check_action(self, action: str) -> None:
        self.path(action)
        bedrock_messages.check_model(self.model.name, action)

    def _ask(
        self, operation: str, request: Json, model: str | None = None
    ) -> tuple[Json, dict[str, int]]:
        """Returns the answer of an operation, and the token counts in its headers."""
        url, headers = self._login.signed(model or self.model.name, operation, request)
        sent = ProxiedRequest("", body=request)
        with transport.exchange(url, headers, sent, configured=self.configured) as response:
            counts = bedrock_usage.headers_with_counts(response.headers)
            answer = transport.answer_of(response, self.redactor)
            return answer, bedrock_usage.counts_in_headers(counts)

    def _events(self, operation: str, request: Json) -> Iterator[tuple[str, Json]]:
        url, headers = self._login.signed(self.model.name, operation, request)
        parts = transport.chunks(url, headers, request, configured=self.configured)
        return event_stream.events(parts, self.redactor)


def _accepted(payload: Json, headers: Mapping[str, str], ask: Callable[[Json], T]) -> T:
    """Returns the result of the first form of a request whose betas Bedrock accepts."""
    *others, last = bedrock_messages.requests_of(payload, headers)
    for request in others:
        try:
            return ask(request)
        except GatewayCallFailed as error:
            if not bedrock_messages.refuses_betas(error):
                raise
    return ask(last)
