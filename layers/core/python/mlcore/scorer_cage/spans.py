"""MLflow's span class as a scorer's code sees it (``mlflow.entities.Span``), made from JSON."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from mlcore.reserved_tags import SPAN_INPUTS, SPAN_MODEL, SPAN_OUTPUTS, SPAN_TYPE
from mlcore.scorer_cage.assessments import Comparable
from mlcore.spans.names import SPAN_COST, SPAN_TRACE_ID

Json = Mapping[str, Any]


class SpanType:
    LLM = "LLM"
    CHAIN = "CHAIN"
    AGENT = "AGENT"
    TOOL = "TOOL"
    CHAT_MODEL = "CHAT_MODEL"
    RETRIEVER = "RETRIEVER"
    PARSER = "PARSER"
    EMBEDDING = "EMBEDDING"
    RERANKER = "RERANKER"
    MEMORY = "MEMORY"
    UNKNOWN = "UNKNOWN"
    WORKFLOW = "WORKFLOW"
    TASK = "TASK"
    GUARDRAIL = "GUARDRAIL"
    EVALUATOR = "EVALUATOR"


class SpanStatusCode(str, Enum):  # noqa: UP042 -- its text is not its value, as in MLflow
    UNSET = "UNSET"
    OK = "OK"
    ERROR = "ERROR"


class SpanStatus(Comparable):
    def __init__(self, status_code: SpanStatusCode | str, description: str = "") -> None:
        self.status_code = SpanStatusCode(status_code)
        self.description = description


class SpanEvent(Comparable):
    def __init__(self, name: str, timestamp: int, attributes: dict[str, Any]) -> None:
        self.name = name
        self.timestamp = timestamp
        self.attributes = attributes


class Link(Comparable):
    def __init__(self, trace_id: str, span_id: str, attributes: dict[str, Any] | None) -> None:
        self.trace_id = trace_id
        self.span_id = span_id
        self.attributes = attributes


class Span:
    def __init__(self, fields: Json) -> None:
        """Makes a span from its JSON.

        Args:
            fields: a span's JSON, in the form of any MLflow client since 3.0, or of 2.x.
        """
        self._fields = fields
        self._attributes: dict[str, Any] = dict(fields.get("attributes") or {})
        self._values: dict[str, Any] = {}
        context = fields.get("context") or {}
        self.span_id = _hexadecimal(fields.get("span_id") or context.get("span_id") or "")
        parent = fields.get("parent_span_id") or fields.get("parent_id")
        self.parent_id = _hexadecimal(parent) if parent else None
        self.name: str = fields.get("name") or ""
        start = fields.get("start_time_unix_nano")
        end = fields.get("end_time_unix_nano")
        self.start_time_ns = _integer(fields.get("start_time") if start is None else start)
        self.end_time_ns = _integer(fields.get("end_time") if end is None else end)

    @property
    def trace_id(self) -> Any:
        return self.get_attribute(SPAN_TRACE_ID)

    request_id = trace_id

    @property
    def inputs(self) -> Any:
        return self.get_attribute(SPAN_INPUTS)

    @property
    def outputs(self) -> Any:
        return self.get_attribute(SPAN_OUTPUTS)

    @property
    def span_type(self) -> Any:
        return self.get_attribute(SPAN_TYPE)

    @property
    def description(self) -> Any:
        return self.get_attribute("mlflow.spanDescription")

    @property
    def model_name(self) -> Any:
        return self.get_attribute(SPAN_MODEL)

    @property
    def llm_cost(self) -> Any:
        return self.get_attribute(SPAN_COST)

    @property
    def status(self) -> SpanStatus:
        status = self._fields.get("status")
        if isinstance(status, Mapping):
            code, text = status.get("code"), status.get("message")
        else:
            code, text = self._fields.get("status_code"), self._fields.get("status_message")
        name = str(code or "UNSET").removeprefix("STATUS_CODE_")
        return SpanStatus(name, text or "")

    @property
    def attributes(self) -> dict[str, Any]:
        return {key: self.get_attribute(key) for key in self._attributes}

    @property
    def events(self) -> list[SpanEvent]:
        return [
            SpanEvent(
                event.get("name") or "",
                _integer(event.get("time_unix_nano") or event.get("timestamp")) or 0,
                dict(event.get("attributes") or {}),
            )
            for event in self._fields.get("events") or ()
        ]

    @property
    def links(self) -> list[Link]:
        return [
            Link(link.get("trace_id"), link.get("span_id"), link.get("attributes"))
            for link in self._fields.get("links") or ()
        ]

    def get_attribute(self, key: str) -> Any:
        """Returns the value of an attribute, parsed from the JSON text in which it is stored; a
        text that is not JSON unchanged, and None if the span has no such attribute."""
        if key not in self._values:
            value = self._attributes.get(key)
            if isinstance(value, str):
                # Some clients store texts as they are.
                with suppress(ValueError, RecursionError):
                    value = json.loads(value)
            self._values[key] = value
        return self._values[key]

    def stored_attribute(self, key: str) -> Any:
        """Returns the value of an attribute as it is stored: mostly a JSON text."""
        return self._attributes.get(key)

    def to_dict(self) -> dict[str, Any]:
        return dict(self._fields)

    def __getitem__(self, item: Any) -> Any:
        raise TypeError(
            f"'{type(self).__name__}' object is not subscriptable. Use attribute access instead, "
            "e.g. `span.inputs`, `span.outputs`, or `span.attributes`."
        )

    __iter__ = None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(name={self.name!r}, trace_id={self.trace_id!r}, "
            f"span_id={self.span_id!r}, parent_id={self.parent_id!r})"
        )


def _hexadecimal(text: str) -> str:
    """Returns a span id in hexadecimal digits, from those or from the Base64 of newer clients."""
    if text.startswith("0x"):
        return text[2:]
    if len(text) == 16:
        return text
    try:
        return base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)
