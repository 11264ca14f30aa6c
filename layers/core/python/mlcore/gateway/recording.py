"""What happens during a call, as spans in memory; keeps nothing.

Names, attributes and types are those of MLflow's gateway (``mlflow.gateway.tracing_utils``), whose
pages of usage read them.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from uuid import uuid4

from mlcore.entities.gateway import Endpoint
from mlcore.errors import GatewayCallFailed, MlflowError
from mlcore.providers.model import Model
from mlcore.spans.attributes import json_text
from mlcore.spans.names import (
    SPAN_INPUTS,
    SPAN_MESSAGE_FORMAT,
    SPAN_MODEL,
    SPAN_OUTPUTS,
    SPAN_PROVIDER,
    SPAN_TRACE_ID,
    SPAN_TYPE,
    SPAN_USAGE,
)
from mlcore.spans.stored import StoredSpan, base64_id

UNKNOWN: Final = "UNKNOWN"
LLM: Final = "LLM"
GUARDRAIL: Final = "GUARDRAIL"
EVALUATOR: Final = "EVALUATOR"

_SECRET_LENGTH: Final = 8
"""Shorter values are no keys, and may be in any sentence."""
_CALLER_HEADER: Final = "x-mlflow-gateway-caller"
JUDGE: Final = "judge"
"""What judges of MLflow's clients say in that header; those of this server are named alike."""


class Caller(NamedTuple):
    """Who calls, and with which headers; names in lower case."""

    username: str | None = None
    headers: Mapping[str, str] = {}

    @property
    def program(self) -> str | None:
        """What the call comes from, as it says itself."""
        named = self.headers.get(_CALLER_HEADER)
        return named or self.headers.get("user-agent", "").split("/")[0].strip() or None


def caller_of(username: str | None, *, judges: bool) -> Caller:
    """Who calls from within the server.

    Args:
        judges: whether a judge is at work.
    """
    return Caller(username, {_CALLER_HEADER: JUDGE} if judges else {})


class Span:
    """Something that takes its time."""

    __slots__ = ("attributes", "end", "error", "model", "name", "parent", "span_id", "start")

    def __init__(self, name: str, kind: str, parent: Span | None) -> None:
        self.name = name
        self.parent = parent
        self.span_id = secrets.randbits(64) or 1
        self.start = time.time_ns()
        self.end = 0
        self.error: BaseException | None = None
        self.model: Model | None = None
        """The model that is asked, if one is."""
        self.attributes: dict[str, Any] = {SPAN_TYPE: kind}

    @property
    def usage(self) -> dict[str, int]:
        """Tokens by MLflow's names; empty if none were told."""
        found: dict[str, int] = self.attributes.get(SPAN_USAGE, {})
        return found

    def asked(self, inputs: Any) -> None:
        self.attributes[SPAN_INPUTS] = inputs

    def answered(self, outputs: Any) -> None:
        if outputs is not None:
            self.attributes[SPAN_OUTPUTS] = outputs

    def used(self, usage: Mapping[str, int]) -> None:
        if usage:
            self.attributes[SPAN_USAGE] = {**self.usage, **usage}

    def stored(self, trace_number: int, trace_id: str) -> StoredSpan:
        attributes = {SPAN_TRACE_ID: trace_id, **self.attributes}
        error = self.error
        return {
            "trace_id": base64_id(trace_number, 16),
            "span_id": base64_id(self.span_id, 8),
            "parent_span_id": None if self.parent is None else base64_id(self.parent.span_id, 8),
            "name": self.name,
            "start_time_unix_nano": self.start,
            "end_time_unix_nano": self.end,
            "events": [] if error is None else [_exception(error, self.end)],
            "status": {
                "code": "STATUS_CODE_OK" if error is None else "STATUS_CODE_ERROR",
                "message": "" if error is None else f"{_kind(error)}: {_said(error)}",
            },
            "attributes": {name: json_text(value) for name, value in attributes.items()},
            "links": [],
        }


class Recording:
    """The spans of one call; the first is the call itself."""

    def __init__(self, endpoint: Endpoint, workspace: str, caller: Caller) -> None:
        self.endpoint = endpoint
        self.workspace = workspace
        self.caller = caller
        self.request_type = ""
        """In MLflow's words."""
        self.trace_number = uuid4().int
        self.spans: list[Span] = []
        self._within: list[Span] = []

    @property
    def is_kept(self) -> bool:
        """Whether the endpoint wants to know of its calls."""
        return self.endpoint.usage_tracking and self.endpoint.experiment_id is not None

    @contextmanager
    def span(self, name: str, kind: str) -> Iterator[Span]:
        """What is begun before it ends is within it."""
        span = Span(name, kind, self._within[-1] if self._within else None)
        self.spans.append(span)
        self._within.append(span)
        try:
            yield span
        except GeneratorExit:  # whoever listened has gone, which is no failure
            raise
        except BaseException as error:
            span.error = error
            raise
        finally:
            span.end = time.time_ns()
            self._within.remove(span)

    @contextmanager
    def call(self, inputs: Any, request_type: str, message_format: str = "") -> Iterator[Span]:
        """The call itself.

        Args:
            message_format: of which maker's API the inputs are, if not of OpenAI's.
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
                span.asked(inputs)
            yield span

    @contextmanager
    def attempt(self, model: Model) -> Iterator[Span]:
        """One model that is asked. Its failure repeats none of its credentials."""
        with self.span(f"provider/{model.provider}/{model.name}", LLM) as span:
            span.model = model
            span.attributes |= {SPAN_PROVIDER: model.provider, SPAN_MODEL: model.name}
            try:
                yield span
            except GatewayCallFailed as error:
                raise _without_secrets(error, model) from None


def _without_secrets(error: GatewayCallFailed, model: Model) -> GatewayCallFailed:
    """The same, without credentials that a provider repeats in what it says."""
    told = json_text(error.detail)
    hidden = told
    for value in model.secret.values():
        if len(value) >= _SECRET_LENGTH:
            hidden = hidden.replace(json_text(value)[1:-1], "[REDACTED]")
    return error if hidden == told else GatewayCallFailed(error.status, json.loads(hidden))


def _exception(error: BaseException, time_unix_nano: int) -> dict[str, Any]:
    return {
        "name": "exception",
        "time_unix_nano": time_unix_nano,
        "attributes": {"exception.type": _kind(error), "exception.message": _said(error)},
    }


def _kind(error: BaseException) -> str:
    return "HTTPException" if type(error) is GatewayCallFailed else type(error).__name__


def _said(error: BaseException) -> str:
    """What its caller is told: texts of faults of ours may hold anything."""
    if isinstance(error, GatewayCallFailed):
        return f"{error.status}: {error.message}"
    return error.message if isinstance(error, MlflowError) else "The request failed unexpectedly."
