"""The attribute names of OpenTelemetry instrumentations, as tables: which attribute holds what
MLflow knows as span type, inputs, outputs, token usage, model and so on.
:mod:`traces.conventions.frameworks` has the instrumentations that need code.

Attribute values are JSON text here. An empty value (``""``, ``{}``, ``null``) counts as absent.
"""

# ruff: noqa: ARG002 -- all conventions share one signature

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from mlcore.spans.attribute_values import Attributes
from mlcore.wire.json_text import load_json

Events = Sequence[dict[str, Any]]


def parse_json(value: Any) -> Any:
    """Parses JSON text. Returns the value unchanged if it is not a text or not JSON."""
    if isinstance(value, str):
        try:
            return load_json(value)
        except ValueError:
            return value
    return value


def json_text(value: Any) -> str:
    return json.dumps(value, default=str)


def value_of(attributes: Attributes, key: str) -> Any:
    """Returns the value of a span's attribute; None if it is absent, or JSON of an empty value, 0
    or false."""
    value = attributes.get(key)
    if isinstance(value, str):
        try:
            return value if load_json(value) else None
        except ValueError:
            return value
    return value


class Convention:
    """The names that an OpenTelemetry instrumentation gives to span attributes. Methods return None
    for data that a span lacks."""

    kind_key: str | None = None
    kinds: ClassVar[Mapping[str, str]] = MappingProxyType({})
    tokens: tuple[str | None, str | None, str | None] = (None, None, None)
    """Attributes with the tokens of the input, of the output, and of both."""
    cache_tokens: tuple[Sequence[str], Sequence[str]] = ((), ())
    """Attributes with the tokens read from a cache, and written to one. The first attribute present
    counts."""
    input_keys: Sequence[str | re.Pattern[str]] = ()
    output_keys: Sequence[str | re.Pattern[str]] = ()
    model_keys: Sequence[str] = ()
    provider_key: str | None = None
    tool_keys: Sequence[str] = ()

    def span_type(self, attributes: Attributes) -> str | None:
        kind = attributes.get(self.kind_key) if self.kind_key else None
        if not kind:
            return None
        kind = parse_json(kind)
        return self.kinds.get(kind) if isinstance(kind, str) else None

    def inputs(self, attributes: Attributes) -> Any:
        return self.first(attributes, self.input_keys)

    def outputs(self, attributes: Attributes) -> Any:
        return self.first(attributes, self.output_keys)

    def inputs_of_events(self, events: Events, attributes: Attributes) -> Any:
        return None

    def outputs_of_events(self, events: Events, attributes: Attributes) -> Any:
        return None

    def token_counts(self, attributes: Attributes) -> tuple[Any, Any, Any]:
        input_tokens, output_tokens, total_tokens = [
            attributes.get(key) if key else None for key in self.tokens
        ]
        return input_tokens, output_tokens, total_tokens

    def cache_counts(self, attributes: Attributes) -> tuple[Any, Any]:
        read, written = [
            next((attributes[key] for key in keys if attributes.get(key) is not None), None)
            for keys in self.cache_tokens
        ]
        return read, written

    def model(self, attributes: Attributes) -> Any:
        return parse_json(self.first(attributes, self.model_keys))

    def provider(self, attributes: Attributes) -> Any:
        return parse_json(value_of(attributes, self.provider_key)) if self.provider_key else None

    def tools(self, attributes: Attributes) -> Any:
        return self.first(attributes, self.tool_keys)

    def message_format(self, attributes: Attributes) -> str | None:
        return None

    @staticmethod
    def first(attributes: Attributes, keys: Sequence[str | re.Pattern[str]]) -> Any:
        for key in keys:
            if isinstance(key, str):
                names = [key]
            else:
                names = [name for name in attributes if key.match(name)]
            for name in names:
                value = value_of(attributes, name)
                if value:
                    return value
        return None


class OpenInference(Convention):
    kind_key = "openinference.span.kind"
    kinds: ClassVar = {
        kind: kind
        for kind in (
            *("TOOL", "CHAIN", "LLM", "RETRIEVER", "EMBEDDING"),
            *("AGENT", "RERANKER", "UNKNOWN", "GUARDRAIL", "EVALUATOR"),
        )
    }
    tokens = ("llm.token_count.prompt", "llm.token_count.completion", "llm.token_count.total")
    cache_tokens = (
        ("llm.token_count.prompt_details.cache_read",),
        ("llm.token_count.prompt_details.cache_write",),
    )
    input_keys: Sequence[str | re.Pattern[str]] = ("input.value",)
    output_keys: Sequence[str | re.Pattern[str]] = ("output.value",)
    model_keys = (
        "llm.response.model_name",
        "llm.model_name",
        "llm.request.model_name",
        "embedding.model_name",
    )
    provider_key = "llm.provider"


class GenAi(Convention):
    """The attribute names of OpenTelemetry's own semantic conventions for generative AI."""

    kind_key = "gen_ai.operation.name"
    kinds: ClassVar = {
        "chat": "CHAT_MODEL",
        "create_agent": "AGENT",
        "embeddings": "EMBEDDING",
        "execute_tool": "TOOL",
        "generate_content": "LLM",
        "invoke_agent": "AGENT",
        "text_completion": "LLM",
        "response": "LLM",
    }
    tokens = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", None)
    cache_tokens = (
        ("gen_ai.usage.cache_read.input_tokens",),
        ("gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens"),
    )
    input_keys: Sequence[str | re.Pattern[str]] = (
        "gen_ai.input.messages",
        "gen_ai.tool.call.arguments",
    )
    output_keys: Sequence[str | re.Pattern[str]] = (
        "gen_ai.output.messages",
        "gen_ai.tool.call.result",
    )
    model_keys = ("gen_ai.response.model", "gen_ai.request.model")
    provider_key = "gen_ai.provider.name"
    tool_keys = ("gen_ai.tool.definitions",)

    def inputs_of_events(self, events: Events, attributes: Attributes) -> Any:
        roles = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant")}
        messages = [
            {"role": roles[event["name"]], "content": parse_json(content)}
            for event in events
            if event["name"] in roles and (content := event["attributes"].get("content"))
        ]
        return json_text(messages) if messages else None

    def outputs_of_events(self, events: Events, attributes: Attributes) -> Any:
        messages = [
            {
                "role": parse_json(event["attributes"].get("role", "assistant")),
                "content": parse_json(content),
            }
            for event in events
            if event["name"] == "gen_ai.choice" and (content := event["attributes"].get("content"))
        ]
        return json_text(messages) if messages else None


class SpringAi(Convention):
    kind_key = GenAi.kind_key
    kinds: ClassVar = {"chat": "CHAT_MODEL", "embeddings": "EMBEDDING"}
    tokens = GenAi.tokens

    def inputs_of_events(self, events: Events, attributes: Attributes) -> Any:
        return self._content(events, "prompt")

    def outputs_of_events(self, events: Events, attributes: Attributes) -> Any:
        return self._content(events, "completion")

    @staticmethod
    def _content(events: Events, role: str) -> Any:
        for event in events:
            if event["name"] == f"gen_ai.content.{role}":
                value = event["attributes"].get(f"gen_ai.{role}")
                if value:
                    return value
        return None


class Traceloop(Convention):
    kind_key = "traceloop.span.kind"
    kinds: ClassVar = {
        "workflow": "WORKFLOW",
        "task": "TASK",
        "agent": "AGENT",
        "tool": "TOOL",
        "unknown": "UNKNOWN",
    }
    tokens = (
        "gen_ai.usage.prompt_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.usage.total_tokens",
    )
    input_keys: Sequence[str | re.Pattern[str]] = (
        "traceloop.entity.input",
        re.compile(r"gen_ai\.prompt\.\d+\.content"),
        re.compile(r"gen_ai\.completion\.\d+\.tool_calls\.\d+\.arguments"),
    )
    output_keys: Sequence[str | re.Pattern[str]] = (
        "traceloop.entity.output",
        re.compile(r"gen_ai\.completion\.\d+\.content"),
    )
    provider_key = "gen_ai.system"


class GoogleAdk(Convention):
    input_keys: Sequence[str | re.Pattern[str]] = (
        "gcp.vertex.agent.llm_request",
        "gcp.vertex.agent.tool_call_args",
    )
    output_keys: Sequence[str | re.Pattern[str]] = (
        "gcp.vertex.agent.llm_response",
        "gcp.vertex.agent.tool_response",
    )


class Laminar(Convention):
    kind_key = "lmnr.span.type"
    kinds: ClassVar = {
        "LLM": "LLM",
        "TOOL": "TOOL",
        "DEFAULT": "CHAIN",
        "PIPELINE": "CHAIN",
        "EXECUTOR": "AGENT",
        "EVALUATOR": "EVALUATOR",
        "HUMAN_EVALUATOR": "EVALUATOR",
        "EVALUATION": "EVALUATOR",
        "CACHED": "LLM",
    }
    tokens = GenAi.tokens
    input_keys: Sequence[str | re.Pattern[str]] = ("lmnr.span.input",)
    output_keys: Sequence[str | re.Pattern[str]] = ("lmnr.span.output",)
    model_keys = GenAi.model_keys
    provider_key = "gen_ai.system"

    def message_format(self, attributes: Attributes) -> str | None:
        return "openai" if "lmnr.span.type" in attributes else None


class Langfuse(Convention):
    kind_key = "langfuse.observation.type"
    kinds: ClassVar = {
        "generation": "LLM",
        "embedding": "EMBEDDING",
        "tool": "TOOL",
        "retriever": "RETRIEVER",
        "agent": "AGENT",
        "chain": "CHAIN",
        "evaluator": "EVALUATOR",
        "guardrail": "GUARDRAIL",
        "span": "UNKNOWN",
    }
    input_keys: Sequence[str | re.Pattern[str]] = ("langfuse.observation.input",)
    output_keys: Sequence[str | re.Pattern[str]] = ("langfuse.observation.output",)
