"""Spans in any mixture of conventions: stock MLflow stores the same attributes of them, the cost
included."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mlcore.spans import span_costs, trace_totals
from tests.unit.traces.ingest.otlp_values import written
from traces.ingest import otlp, otlp_protobuf, span_conversion

mlflow_span = pytest.importorskip("mlflow.entities.span")
tracing = pytest.importorskip("mlflow.tracing.utils")
translation = pytest.importorskip("mlflow.tracing.otel.translation")

EXAMPLES = int(os.environ.get("TRANSLATION_EXAMPLES", "100"))

MODELS = st.sampled_from(
    [
        *("gpt-4o", "gpt-4o-mini", "openai/gpt-4o", "azure/gpt-4o", "claude-3-5-sonnet-20241022"),
        *(
            "claude-sonnet-4-5",
            "gemini-2.5-flash",
            "gemini/gemini-2.5-pro",
            "text-embedding-3-small",
        ),
        *("databricks-claude-sonnet-4", "databricks/databricks-gte-large-en", "gateway:/x"),
        *("endpoints:/gpt-4o", "openrouter/openai/gpt-4o", "no-such-model", "GPT-4o", "a/b/c", ""),
        *("anthropic.claude-3-haiku-20240307-v1:0", "dall-e-3", "llama3"),
    ]
)
PROVIDERS = st.sampled_from(
    [
        *("openai", "OpenAI", "azure", "anthropic", "gemini", "bedrock", "databricks", "nobody"),
        *("", "az.ai.openai", "vertex_ai", "openrouter", "ollama"),
    ]
)
COUNTS = st.sampled_from([0, 1, 7, 12, 1000, 123_457, -3, 2.5, "12", '"13"', "x", True, None, []])
MESSAGES = st.sampled_from(
    [
        *("hi", "<REDACTED>", "", "null", "{}", "[]"),
        json.dumps([{"role": "user", "content": "é"}]),
        json.dumps([{"role": "model", "parts": [{"text": "x"}]}, {"parts": 3}]),
        json.dumps({"model": "gpt-4o", "messages": []}),
        json.dumps({"model": 3}),
        json.dumps({"contents": [1]}),
        json.dumps(json.dumps({"a": 1})),
        5,
        True,
    ]
)
USAGE = st.dictionaries(
    st.sampled_from(
        [
            *("input_tokens", "output_tokens", "total_tokens", "cache_read_input_tokens"),
            *("cache_creation_input_tokens", "cache_creation_input_tokens_above_1hr"),
        ]
    ),
    st.sampled_from([0, 3, 10, 1000, 77_777, 2.5, -4, None, "5", True, 10**400]),
    max_size=6,
).map(json.dumps)


def kinds(*words: str) -> st.SearchStrategy[str]:
    return st.sampled_from([*words, "other", '"quoted"', "3"])


KINDS = {
    "openinference.span.kind": kinds("LLM", "CHAIN", "GUARDRAIL", "UNKNOWN"),
    "gen_ai.operation.name": kinds("chat", "embeddings", "llm_call", "system_prompt", "Chat"),
    "traceloop.span.kind": kinds("workflow", "unknown", "tool"),
    "ai.operationId": kinds("ai.generateText.doGenerate", "ai.streamText", "ai.toolCall"),
    "span.type": kinds("llm_request", "claude_code.llm_request", "tool", "interaction", "llm"),
    "entity.type": kinds("agent", "memory"),
    "lmnr.span.type": kinds("LLM", "DEFAULT", "CACHED"),
    "langfuse.observation.type": kinds("generation", "span"),
    "mlflow.spanType": kinds("LLM", '"LLM"', "UNKNOWN", '"UNKNOWN"'),
    "gen_ai.agent.name": kinds("gemini-cli"),
}
MODEL_KEYS = [
    *("llm.response.model_name", "llm.model_name", "llm.request.model_name"),
    *("embedding.model_name", "gen_ai.response.model", "gen_ai.request.model"),
    *("mlflow.llm.model", "ai.model.id", "lk.model"),
]
PROVIDER_KEYS = ["llm.provider", "gen_ai.provider.name", "gen_ai.system", "mlflow.llm.provider"]
COUNT_KEYS = [
    *("llm.token_count.prompt", "llm.token_count.completion", "llm.token_count.total"),
    "llm.token_count.prompt_details.cache_read",
    "llm.token_count.prompt_details.cache_write",
    *("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    *("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "llm.usage.total_tokens"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
    *("usage.prompt_tokens", "usage.completion_tokens", "usage.total_tokens"),
    *("llm.usage.prompt_tokens", "llm.usage.completion_tokens"),
]
CONTENT_KEYS = [
    *("input.value", "output.value", "gen_ai.input.messages", "gen_ai.output.messages"),
    *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.tool.definitions"),
    *("traceloop.entity.input", "traceloop.entity.output", "gen_ai.prompt.0.content"),
    *("gen_ai.completion.0.content", "gen_ai.completion.0.tool_calls.0.arguments"),
    *("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
    *("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
    *("ai.prompt", "ai.prompt.messages", "ai.response.text", "ai.response.object", "ai.value"),
    *("ai.toolCall.args", "ai.toolCall.result", "ai.embedding", "ai.values", "ai.embeddings"),
    *("agent.messages", "llm.messages", "input", "output"),
    *("lk.user_input", "lk.user_transcript", "lk.chat_ctx", "lk.input_text", "lk.response.text"),
    *("lk.response.function_calls", "lk.agent_name", "lk.tts_metrics", "lk.retry_count"),
    *("lk.function_tool.name", "lk.instructions", "lmnr.span.input", "lmnr.span.output"),
    *("langfuse.observation.input", "langfuse.observation.output", "user_prompt", "new_context"),
    *("tool_input", "full_command", "file_path", "response.model_output"),
    *("voltagent.operation_id", "voltagent.conversation_id", "mlflow.spanInputs"),
    *("mlflow.spanOutputs", "mlflow.chat.tools", "mlflow.message.format", "other"),
]
ONES = st.one_of(
    st.sampled_from(sorted(KINDS)).flatmap(lambda key: st.tuples(st.just(key), KINDS[key])),
    st.tuples(st.sampled_from(MODEL_KEYS), MODELS),
    st.tuples(st.sampled_from(PROVIDER_KEYS), PROVIDERS),
    st.tuples(st.sampled_from(COUNT_KEYS), COUNTS),
    st.tuples(st.sampled_from(CONTENT_KEYS), MESSAGES),
    st.tuples(st.just("mlflow.chat.tokenUsage"), USAGE),
    st.tuples(
        st.just("mlflow.llm.cost"),
        st.sampled_from(["null", "{}", '{"input_cost": 1, "total_cost": 1}', "x", None, 3]),
    ),
)
WHOLE = st.builds(
    lambda model, provider, counts, usage: {**model, **provider, **counts, **usage},
    st.dictionaries(st.sampled_from(MODEL_KEYS), MODELS, max_size=1),
    st.dictionaries(st.sampled_from(PROVIDER_KEYS), PROVIDERS, max_size=1),
    st.dictionaries(st.sampled_from(COUNT_KEYS), st.integers(0, 5000), max_size=4),
    st.dictionaries(st.just("mlflow.chat.tokenUsage"), USAGE, max_size=1),
)
"""More likely to have a cost than single attributes by chance."""
ATTRIBUTES = st.builds(
    lambda whole, more: {**whole, **dict(more)}, WHOLE, st.lists(ONES, max_size=6)
)
EVENTS = st.lists(
    st.builds(
        otlp.Event,
        st.sampled_from(
            [
                *("gen_ai.user.message", "gen_ai.system.message", "gen_ai.choice"),
                *("gen_ai.content.prompt", "gen_ai.content.completion", "tool.output"),
            ]
        ),
        st.integers(0, 9),
        st.dictionaries(
            st.sampled_from(["content", "role", "gen_ai.prompt", "gen_ai.completion", "output"]),
            MESSAGES,
            max_size=2,
        ),
    ),
    max_size=2,
)


@pytest.fixture(scope="module", autouse=True)
def bundled_prices() -> Iterator[None]:
    """Stock asks the internet for newer prices otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_MODEL_CATALOG_URI", "")
        yield


@settings(deadline=None, max_examples=EXAMPLES, database=None)
@given(ATTRIBUTES, EVENTS)
def test_the_same_attributes(attributes: dict[str, Any], events: list[otlp.Event]) -> None:
    original = otlp.Span(b"\1" * 16, b"\2" * 8, b"", "s", 1, 2, attributes, events, [], 1, "", 3)
    sent = written([otlp.ResourceSpans({}, [original])])
    proto = sent.resource_spans[0].scope_spans[0].spans[0]
    try:
        span = mlflow_span.Span.from_otel_proto(proto)
        attributes_once = translation.strip_otlp_double_encoding(span._span._attributes)
        span._span._attributes = attributes_once  # as the route does
        theirs = translation.translate_span_when_storing(span)
    except Exception:  # stock answers 500
        theirs = None
    [[read]] = [resource.spans for resource in otlp_protobuf.read(sent.SerializeToString())]
    stored = span_conversion.to_stored(read)
    span_costs.add_cost(stored["attributes"], {})
    assume(theirs is not None)
    assert stored["attributes"] == theirs["attributes"]
    assert stored["kind"] == theirs["kind"] == "SPAN_KIND_CLIENT"


AMOUNTS = st.none() | st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("input_cost", "output_cost", "total_cost"), st.floats(0, 1) | st.integers(0, 9)
    ),
)


@settings(deadline=None, max_examples=EXAMPLES, database=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), AMOUNTS), max_size=9), st.randoms(use_true_random=False)
)
def test_the_same_sums(drawn: list[tuple[int, Any]], chance: random.Random) -> None:
    """To the last digit, where stock hears of spans as they end."""
    parts = [
        trace_totals.SpanAmounts(
            f"{number:x}", f"{parent:x}" if parent < number else None, 100 - number, amounts
        )
        for number, (parent, amounts) in enumerate(drawn)
    ]
    nodes = [
        tracing.SpanAggregationNode(part.span_id, part.parent_id, part.amounts)
        for part in sorted(parts, key=lambda item: item.end)
    ]
    chance.shuffle(parts)
    assert trace_totals.total_cost(parts) == (tracing.aggregate_cost_from_span_nodes(nodes) or {})
