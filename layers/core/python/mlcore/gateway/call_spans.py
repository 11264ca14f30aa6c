"""Records a call through the gateway as spans (timed steps) in memory;
:mod:`mlcore.gateway.call_traces` writes them as a trace.

Names, attributes and types are those of MLflow's gateway (``mlflow.gateway.tracing_utils``), which
the usage pages read.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from mlcore import reserved_tags
from mlcore.entities.gateway import Endpoint
from mlcore.errors import GatewayCallFailed, MlflowError
from mlcore.gateway.caller import Caller
from mlcore.providers.credential_redactor import CredentialRedactor
from mlcore.providers.model import Model
from mlcore.providers.provider import Provider
from mlcore.providers.token_counts import consistent
from mlcore.spans.attribute_values import json_text
from mlcore.spans.names import SPAN_MESSAGE_FORMAT, SPAN_TRACE_ID
from mlcore.spans.stored_span import INTERNAL, StoredSpan, base64_id
from mlcore.wire.json_text import storable

UNKNOWN: Final = "UNKNOWN"
LLM: Final = "LLM"
GUARDRAIL: Final = "GUARDRAIL"
EVALUATOR: Final = "EVALUATOR"


class Span:
    """A timed step of a call of MLflow's AI gateway. It becomes a span of the call's trace."""

    __slots__ = (
        *("attributes", "end", "error", "model", "name", "named_models", "parent", "span_id"),
        "start",
    )

    def __init__(self, name: str, kind: str, parent: Span | None) -> None:
        self.name = name
        self.parent = parent
        self.span_id = secrets.randbits(64) or 1
        self.start = time.time_ns()
        self.end = 0
        self.error: BaseException | None = None
        self.model: Model | None = None
        """The model that is asked, if one is."""
        self.named_models: tuple[str, ...] = ()
        """The models that the request itself names, if it is sent as it is."""
        self.attributes: dict[str, Any] = {reserved_tags.SPAN_TYPE: kind}

    @property
    def usage(self) -> dict[str, int]:
        """The token counts under MLflow's names; empty if the provider reported none."""
        counts: dict[str, int] = self.attributes.get(reserved_tags.SPAN_TOKEN_USAGE, {})
        return counts

    def set_inputs(self, inputs: Any) -> None:
        self.attributes[reserved_tags.SPAN_INPUTS] = inputs

    def set_outputs(self, outputs: Any) -> None:
        if outputs is not None:
            self.attributes[reserved_tags.SPAN_OUTPUTS] = outputs

    def add_usage(self, usage: Mapping[str, int]) -> None:
        """Adds token counts; in a stream, a later count replaces an earlier one of the same
        name."""
        if usage:
            self.attributes[reserved_tags.SPAN_TOKEN_USAGE] = {**self.usage, **usage}

    def add_total(self) -> None:
        """Adds the total of the token counts, which not every provider reports in a stream, and
        corrects counts that contradict one another."""
        if self.usage:
            self.add_usage(consistent(self.usage))

    def _named_in_content(self) -> str | None:
        """Returns the model that the inputs, or else the outputs, name in their field ``model``, as
        MLflow's server completes spans that it stores."""
        for key in (reserved_tags.SPAN_INPUTS, reserved_tags.SPAN_OUTPUTS):
            content = self.attributes.get(key)
            if isinstance(content, dict) and (model := content.get("model")):
                return model if isinstance(model, str) else None
        return None

    def _log_level(self) -> int:
        """Returns the level that MLflow's client gives to such a span."""
        if self.error is not None:
            return logging.ERROR
        return logging.INFO if self.attributes[reserved_tags.SPAN_TYPE] == LLM else logging.DEBUG

    def to_stored(
        self, trace_number: int, trace_id: str, redactors: Iterable[CredentialRedactor]
    ) -> StoredSpan:
        attributes = dict(self.attributes)
        if reserved_tags.SPAN_MODEL not in attributes and (name := self._named_in_content()):
            attributes[reserved_tags.SPAN_MODEL] = name
        attributes[reserved_tags.SPAN_LOG_LEVEL] = self._log_level()
        texts = {name: json_text(value) for name, value in attributes.items()}
        for redactor in redactors:
            texts = {name: redactor.json_text(text) for name, text in texts.items()}
        texts = {SPAN_TRACE_ID: json_text(trace_id), **texts}
        error = self.error
        return {
            "trace_id": base64_id(trace_number, 16),
            "span_id": base64_id(self.span_id, 8),
            "parent_span_id": None if self.parent is None else base64_id(self.parent.span_id, 8),
            "name": self.name,
            "kind": INTERNAL,
            "start_time_unix_nano": self.start,
            "end_time_unix_nano": self.end,
            "events": [] if error is None else [_exception(error, self.end)],
            "status": {
                "code": "STATUS_CODE_OK" if error is None else "STATUS_CODE_ERROR",
                "message": ""
                if error is None
                else f"{_exception_type(error)}: {_public_message(error)}",
            },
            "attributes": {name: storable(text) for name, text in texts.items()},
            "links": [],
        }


class Recording:
    """Records the spans of a call through the AI gateway; the first span covers the whole call."""

    def __init__(self, endpoint: Endpoint, workspace: str, caller: Caller) -> None:
        self.endpoint = endpoint
        self.workspace = workspace
        self.caller = caller
        self.request_type = ""
        """MLflow's name of the kind of request, e.g. ``unified/chat``."""
        self.trace_number = uuid4().int
        self.spans: list[Span] = []
        self._redactors: list[CredentialRedactor] = []
        """The redactors of the credentials of all models that were asked."""
        self._open_spans: list[Span] = []

    @property
    def is_traced(self) -> bool:
        """Whether a trace of the gateway call will be written, because the gateway endpoint tracks
        its usage in an experiment."""
        return self.endpoint.usage_tracking and self.endpoint.experiment_id is not None

    def stored_spans(self, trace_id: str) -> list[StoredSpan]:
        """Returns the spans as a trace stores them, without the credentials of the models: a
        credential that a stream has repeated in several parts is found, too, because the parts are
        joined here."""
        return [span.to_stored(self.trace_number, trace_id, self._redactors) for span in self.spans]

    @contextmanager
    def span(self, name: str, kind: str) -> Iterator[Span]:
        """Records a span of a gateway call. Spans begun in the ``with`` block are its children."""
        span = Span(name, kind, self._open_spans[-1] if self._open_spans else None)
        self.spans.append(span)
        self._open_spans.append(span)
        try:
            yield span
        except GeneratorExit:  # the client closed the stream, which is not a failure
            raise
        except BaseException as error:
            span.error = error
            raise
        finally:
            span.end = time.time_ns()
            self._open_spans.remove(span)

    @contextmanager
    def call(self, inputs: Any, request_type: str, message_format: str = "") -> Iterator[Span]:
        """Records the root span, which covers the whole call.

        Args:
            message_format: the provider whose API the inputs follow; empty for OpenAI's.
        """
        self.request_type = request_type
        with self.span(f"gateway/{self.endpoint.name}", UNKNOWN) as span:
            span.attributes |= {
                "endpoint_id": self.endpoint.endpoint_id,
                "endpoint_name": self.endpoint.name,
            }
            host = self.caller.headers.get("host")
            if host:
                span.attributes["server_url"] = host
            if message_format:
                span.attributes[SPAN_MESSAGE_FORMAT] = message_format
            if inputs is not None:
                span.set_inputs(inputs)
            yield span

    @contextmanager
    def attempt(self, provider: Provider, *, is_streamed: bool = False) -> Iterator[Span]:
        """Records a span around one request to a model. A GatewayCallFailed raised inside is raised
        again without the model's credentials in its texts.

        Args:
            is_streamed: whether the answer is asked for as a stream.
        """
        model = provider.model
        with self.span(f"provider/{model.provider}/{model.name}", LLM) as span:
            span.model = model
            span.attributes |= {
                reserved_tags.SPAN_PROVIDER: model.provider,
                reserved_tags.SPAN_MODEL: model.name,
                **self._method(is_streamed),
            }
            try:
                self._redactors.append(provider.credential_redactor)
                yield span
            except GatewayCallFailed as error:
                raise _redacted(error, provider.credential_redactor) from None
            finally:
                span.add_total()

    def _method(self, is_streamed: bool) -> dict[str, Any]:
        """Returns the attributes that say which method of MLflow's providers is called; none if the
        request goes to the provider as it is."""
        form, _, method = self.request_type.partition("/")
        if form != "unified":
            return {}
        if is_streamed:
            return {"method": f"{method}_stream", "streaming": True}
        return {"method": method}


def _redacted(error: GatewayCallFailed, redactor: CredentialRedactor) -> GatewayCallFailed:
    """Returns the error without credentials in its text."""
    detail = redactor.value(error.detail)
    retry_after = error.retry_after and redactor.text(error.retry_after)
    provider_fields = redactor.value(dict(error.provider_fields))
    redacted = (detail, retry_after, provider_fields)
    if redacted == (error.detail, error.retry_after, error.provider_fields):
        return error
    return error.with_texts(*redacted)


def _exception(error: BaseException, time_unix_nano: int) -> dict[str, Any]:
    return {
        "name": "exception",
        "time_unix_nano": time_unix_nano,
        "attributes": {
            "exception.type": _exception_type(error),
            "exception.message": _public_message(error),
        },
    }


def _exception_type(error: BaseException) -> str:
    return "HTTPException" if type(error) is GatewayCallFailed else type(error).__name__


def _public_message(error: BaseException) -> str:
    """Returns the text of an error for the trace. The text of an unexpected error is hidden, since
    it may contain anything."""
    if isinstance(error, GatewayCallFailed):
        return storable(f"{error.status}: {error.message}")
    return error.message if isinstance(error, MlflowError) else "The request failed unexpectedly."
