"""Models at Amazon Bedrock: chats by its Converse API; embeddings and Anthropic's Messages API by
InvokeModel; and Bedrock's own operations for AWS's SDKs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from typing import ClassVar, Final, TypeVar

from mlcore.errors import GatewayCallFailed
from mlcore.providers import (
    aws_event_stream,
    bedrock_anthropic,
    bedrock_converse,
    bedrock_embeddings,
    bedrock_operations,
    bedrock_usage,
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
from mlcore.providers.proxied import BinaryEvent, CountedAnswer, ProxiedRequest, RawAnswer

T = TypeVar("T")

_INVOKE: Final = "invoke"
_END_OF_MESSAGE: Final = "messageStop"
_ENDS_OF_ANTHROPIC: Final = ("message_stop", "error")


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
        answer, _ = self._ask("converse", self.redacted(bedrock_converse.request_of(payload)))
        return bedrock_converse.completion_of(answer, self.model.name)

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        check_no_model(payload)
        events = self._events(
            bedrock_operations.CONVERSE_STREAM, self.redacted(bedrock_converse.request_of(payload))
        )
        return bedrock_converse.chunks_of(events, self.model.name)

    def embeddings(self, payload: Json) -> Json:
        check_no_model(payload)

        def spend(tokens: int) -> None:
            self.spent = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}

        return bedrock_embeddings.embed(
            self.model.name, payload, lambda request: self._ask(_INVOKE, request), spend
        )

    def passthrough(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        self._check(action, payload)

        def ask(request: Json) -> Json:
            if action == ANTHROPIC_MESSAGES:
                return self._ask(_INVOKE, request)[0]
            answer, _ = self._ask(
                bedrock_operations.COUNT_TOKENS,
                bedrock_anthropic.count_request(request),
                bedrock_anthropic.foundation_model(self.model.name),
            )
            return bedrock_anthropic.count_answer(answer)

        with bedrock_anthropic.errors():
            return _accepted(payload, headers, ask)

    def passthrough_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        self._check(action, payload)

        def begin(request: Json) -> tuple[bytes, Generator[bytes]]:
            lines = bedrock_anthropic.lines_of(
                self._events(bedrock_operations.INVOKE_STREAM, request)
            )
            first = next(lines, None)
            if first is None:
                raise _incomplete()
            return first, lines

        with bedrock_anthropic.errors():
            first, rest = _accepted(payload, headers, begin)
            with closing(rest):
                yield first
                yield from rest

    def proxy(
        self, request: ProxiedRequest, headers: Mapping[str, str]
    ) -> Iterator[Json | bytes | RawAnswer | CountedAnswer | BinaryEvent]:
        """Calls an operation of Bedrock. Yields its JSON answer, its events, or an answer of
        another type. Raises the errors of
        :func:`mlcore.providers.bedrock_operations.operation_of`."""
        operation = bedrock_operations.operation_of(request, headers, self.model.name)
        url, signed = self._login.signed(
            operation.model, operation.name, operation.body, operation.headers
        )
        sent = ProxiedRequest("", body=operation.body)
        with transport.exchange(url, signed, sent, configured=self.configured) as response:
            kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            if response.status >= 400 or kind == transport.CONTENT_TYPE:
                counts = bedrock_usage.headers_with_counts(response.headers)
                answer = transport.answer_of(response, self.credential_redactor)
                usage = bedrock_usage.counts_of(answer) or bedrock_usage.counts_in_headers(counts)
                yield CountedAnswer(answer, counts, usage) if counts else answer
            elif kind == aws_event_stream.CONTENT_TYPE:
                events = aws_event_stream.messages(
                    transport.read_chunks(response), self.credential_redactor
                )
                yield from _whole(events, operation.name)
            else:
                yield transport.raw_answer_of(response, self.credential_redactor)

    def usage(self, answer: Json) -> dict[str, int]:
        return bedrock_usage.counts_of(answer)

    def _credentials(self) -> Iterable[str]:
        return self._login.credentials()

    @cached_property
    def _login(self) -> BedrockLogin:
        return BedrockLogin(self.model)

    def _check(self, action: str, payload: Json) -> None:
        self.path(action)
        bedrock_anthropic.check_model(self.model.name, action)
        bedrock_operations.check_invoked(payload)  # a profile's model may be of any vendor

    def _ask(
        self, operation: str, request: Json, model: str | None = None
    ) -> tuple[Json, dict[str, int]]:
        """Returns the answer of an operation, and the token counts in its headers."""
        url, headers = self._login.signed(model or self.model.name, operation, request)
        sent = ProxiedRequest("", body=request)
        with transport.exchange(url, headers, sent, configured=self.configured) as response:
            counts = bedrock_usage.headers_with_counts(response.headers)
            answer = transport.answer_of(response, self.credential_redactor)
            return answer, bedrock_usage.counts_in_headers(counts)

    def _events(self, operation: str, request: Json) -> Iterator[tuple[str, Json]]:
        url, headers = self._login.signed(self.model.name, operation, request)
        parts = transport.chunks(url, headers, request, configured=self.configured)
        return aws_event_stream.events(parts, self.credential_redactor)


def _whole(events: Iterator[BinaryEvent], operation: str) -> Iterator[BinaryEvent]:
    """Yields the events of a stream. Raises GatewayCallFailed (502) if it ends before its message
    does, or has no event."""
    last, is_open = None, operation == bedrock_operations.CONVERSE_STREAM
    for last in events:
        kind = last.data.get("type")  # of a model of Anthropic's
        is_open = kind == "message_start" or (
            is_open and last.kind != _END_OF_MESSAGE and kind not in _ENDS_OF_ANTHROPIC
        )
        yield last
    if last is None or is_open:
        raise _incomplete()


def _incomplete() -> GatewayCallFailed:
    return GatewayCallFailed(502, "The provider's stream ended before its message did.")


def _accepted(payload: Json, headers: Mapping[str, str], ask: Callable[[Json], T]) -> T:
    """Sends a request in the forms of :func:`mlcore.providers.bedrock_anthropic.requests_of`, until
    Bedrock accepts its betas. Returns the result."""
    *others, last = bedrock_anthropic.requests_of(payload, headers)
    for request in others:
        try:
            return ask(request)
        except GatewayCallFailed as error:
            if not bedrock_anthropic.refuses_betas(error):
                raise
    return ask(last)
