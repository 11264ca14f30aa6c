"""Whatever OpenTelemetry's format can hold is stored or refused, and read again."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.errors import MlflowError
from mlcore.spans.stored_span import content
from traces import span_responses
from traces.conventions.conventions import Convention
from traces.conventions.translation import CONVENTIONS
from traces.ingest import otlp, span_conversion, span_writes

pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

from tests.examples import number_of
from tests.unit.traces.ingest.otlp_values import VALUES


def named_by(convention: Convention) -> list[str]:
    keys = (
        *(*convention.tokens, *convention.cache_tokens[0], *convention.cache_tokens[1]),
        *(convention.kind_key, convention.provider_key, *convention.model_keys),
        *(*convention.input_keys, *convention.output_keys),
    )
    return [key for key in keys if isinstance(key, str)]


KEYS = st.sampled_from(
    sorted(
        {key for convention in CONVENTIONS for key in named_by(convention)}
        | {"mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.spanType", "mlflow.llm.model"}
        | {"mlflow.chat.tokenUsage", "mlflow.llm.cost", "session.id", "user.id", "lk.x"}
        | {"mlflow.traceTag.a", "mlflow.traceTag.mlflow.traceName", "gen_ai.agent.name"}
        | {"ai.prompt.tools", "ai.response.text", "span.type", "service.name", "content", "role"}
    )
)
TEXTS = st.sampled_from(
    # ruff: noqa: RUF005 -- one list in two lines
    ['"llm_request"', "tool", "chat", "gemini-cli", "ai.generateText.doGenerate", "NaN", "[1]"]
    + ['{"model": "m", "messages": [{"role": "user", "content": [1]}]}', '"\\"x\\""', "12", "null"]
)
ATTRIBUTES = st.dictionaries(KEYS, TEXTS | VALUES, max_size=6)
EVENTS = st.builds(
    otlp.Event,
    st.sampled_from(["gen_ai.user.message", "gen_ai.choice", "tool.output", "other"]),
    st.integers(0, 9),
    ATTRIBUTES,
)
SPANS = st.builds(
    otlp.Span,
    trace_id=st.sampled_from([b"\1" * 16, b"\2" * 16, b"\1" * 17, b""]),
    span_id=st.binary(max_size=9),
    parent_span_id=st.binary(max_size=9),
    name=st.text(max_size=3),
    start=st.integers(0, 2**64 - 1),
    end=st.integers(0, 2**64 - 1),
    attributes=ATTRIBUTES,
    events=st.lists(EVENTS, max_size=2),
    links=st.builds(list),
    status=st.integers(0, 9),
    kind=st.integers(0, 9),
    message=st.text(max_size=3),
)


@settings(deadline=None, max_examples=number_of(150))
@given(st.lists(st.builds(otlp.ResourceSpans, ATTRIBUTES, st.lists(SPANS, max_size=2)), max_size=2))
def test_stored_or_refused(exported: list[otlp.ResourceSpans]) -> None:
    try:
        convert_by_trace = span_writes.convert_by_trace(exported)
        exports = [
            span_writes._SpanBatch(trace_id, together)
            for trace_id, together in convert_by_trace.items()
        ]
    except (span_conversion.Inconvertible, MlflowError):
        return
    for export in exports:
        export.complete({})
        assert sum(pack.spans for pack in export.packs) >= len(export.nodes)
    for together in convert_by_trace.values():
        for stored, _ in together:
            read = json.loads(content(stored))
            assert json.loads(json.dumps(span_responses.span(read)))["span_id"] == read["span_id"]
