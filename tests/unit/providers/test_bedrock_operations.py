"""What a caller may send to Bedrock's own operations, whatever it sends."""

from __future__ import annotations

import contextlib
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlcore.errors import GatewayCallFailed
from mlcore.providers import aws_event_stream
from mlcore.providers.anthropic_requests import CALL_TYPES
from mlcore.providers.bedrock_operations import operation_of
from mlcore.providers.bedrock_usage import counts_of
from mlcore.providers.credential_redactor import CredentialRedactor
from mlcore.providers.proxied import ProxiedRequest
from tests.doubles.bedrock import frame

MODEL = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.vendor.model-v1:0"
OPERATIONS = ("converse", "converse-stream", "invoke", "invoke-with-response-stream")
NOTHING = CredentialRedactor(())
PIECES = st.sampled_from(
    (
        *("/", "//", "..", ".", "%2f", "%252F", "%2e%2e", ";", "?", "#", "\\", "\0", " ", "@", "x"),
        *("model", "async-invoke", "guardrail", MODEL, "chat", "anthropic.claude-v2", *OPERATIONS),
        *("count-tokens", "https:", "apply", "version"),
    )
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
EVENTS = st.tuples(
    st.sampled_from(("messageStart", "metadata", "x")), st.dictionaries(TEXTS, JSON, max_size=2)
)


@given(st.lists(PIECES, max_size=9).map("".join) | st.text(), st.sampled_from(("POST", "GET")))
@example(f"model/{MODEL}/converse", "POST")
@example("model/chat/invoke", "POST")
def test_a_path_selects_an_operation_and_nothing_else(path: str, method: str) -> None:
    request = ProxiedRequest(quote(path, safe="/:?@;%"), method, body={}, endpoint="chat")
    operation = None
    with contextlib.suppress(GatewayCallFailed):
        operation = operation_of(request, {}, MODEL)
    if operation is not None:
        assert (operation.model, method) == (MODEL, "POST")
        assert operation.name in (*OPERATIONS, "count-tokens")
        assert operation.headers == ()


KEYS = st.sampled_from(("s3Location", "s3location", "S3_LOCATION", "s3Uri"))


@given(JSON, KEYS, st.sampled_from(("s3://b/k", " S3://b", "s3:")), st.integers(0, 5))
def test_an_object_in_s3_is_found_wherever_it_is(
    other: Any, key: str, uri: str, depth: int
) -> None:
    value: Any = {key: uri if depth % 2 else {"uri": uri, "more": other}}
    for level in range(depth):
        value = [other, value] if level % 2 else {"content": value, "other": other}
    request = ProxiedRequest(f"model/{quote(MODEL)}/invoke", body={"a": value})
    with pytest.raises(GatewayCallFailed, match="S3"):
        operation_of(request, {}, MODEL)


PLACE = {"s3_uri": "s3://b/k", "s3Location": {"uri": "s3://b/k"}}
SCHEMA = {"properties": {"s3_uri": {"description": "s3://b/k of the file", "examples": ["s3://b"]}}}
PARTS = (
    {"toolUse": {"toolUseId": "t", "name": "n", "input": PLACE}},
    *({"type": kind, "id": "t", "name": "n", "input": PLACE} for kind in CALL_TYPES),
    {"functionCall": {"name": "n", "args": PLACE}},
    {"json": PLACE},
    {"json": PLACE, "type": "json"},
)
HONEST: tuple[dict[str, Any], ...] = (
    *({"content": [part]} for part in PARTS),
    *({"parts": [part]} for part in PARTS),
    {"content": [{"toolResult": {"toolUseId": "t", "content": [{"json": PLACE}]}}]},
    {"content": [{"type": "tool_result", "content": [{"json": PLACE, "type": "json"}]}]},
    {"tools": [{"name": "n", "input_schema": SCHEMA, "input_examples": [PLACE]}]},
    {"tools": [{"type": "function", "function": {"name": "n", "parameters": SCHEMA}}]},
    {"tools": [{"name": "n", "parameter_definitions": SCHEMA["properties"]}]},
    {"toolConfig": {"tools": [{"toolSpec": {"inputSchema": {"json": SCHEMA}}}]}},
    {"tool_calls": [{"type": "function", "function": {"name": "n", "arguments": PLACE}}]},
    {"tool_calls": [{"name": "n", "parameters": PLACE}]},
)


def sent(operation: str, body: dict[str, Any]) -> None:
    operation_of(ProxiedRequest(f"model/{quote(MODEL)}/{operation}", body=body), {}, MODEL)


@given(st.sampled_from(HONEST), st.sampled_from(("converse", "invoke")), st.integers(0, 3))
def test_a_tool_may_be_about_objects_in_s3(
    part: dict[str, Any], operation: str, depth: int
) -> None:
    for _ in range(depth):
        part = {"messages": [part]}
    sent(operation, part)
    with pytest.raises(GatewayCallFailed, match="S3"):
        sent(operation, {**part, "more": [{"document": {"source": PLACE}}]})


@given(
    st.sampled_from(PARTS),
    st.sampled_from(("input", "converse", "x", "contents", "invokeModel", "tools")),
    st.integers(0, 3),
)
@example(PARTS[1], "x", 0)
def test_what_looks_like_a_call_of_a_tool_elsewhere_is_none(
    part: dict[str, Any], name: str, depth: int
) -> None:
    """CountTokens and unknown models may read the same names as something else."""
    body: Any = part
    for level in range(depth):
        body = {name: [body] if level % 2 else body}
    for operation in ("count-tokens", "invoke"):
        with pytest.raises(GatewayCallFailed, match="S3"):
            sent(operation, body)
    for nested in ({"content": body}, {"content": [[body]]}, {"content": [{"x": body}]}):
        with pytest.raises(GatewayCallFailed, match="S3"):
            sent("converse", nested)


@given(JSON)
def test_a_type_may_be_anything(kind: Any) -> None:
    part = {"type": kind, "id": "t", "input": PLACE}
    with pytest.raises(GatewayCallFailed, match="S3"):
        sent("converse", {"content": [part]})


@pytest.mark.parametrize("name", ["service_tier", "serviceTier", "performanceConfig"])
def test_null_is_no_tier(name: str) -> None:
    nothing: tuple[Any, ...] = (None, {"type": None}, [None])
    for value in nothing:
        sent("invoke", {name: value})
    dearer: tuple[Any, ...] = ("None", "priority", {"type": [None, "priority"]})
    for value in dearer:
        with pytest.raises(GatewayCallFailed, match="cost more"):
            sent("invoke", {name: value})


@pytest.mark.parametrize("name", ["uri", "s3Location", "s3_uri"])
def test_addresses_below_many_levels_are_found_in_linear_time(name: str) -> None:
    for last in ("text", " S3://bucket/key"):
        value: Any = [1] * 300_000 + [last]
        for _ in range(90):
            value = [{name: value}]
        began = time.process_time()
        with contextlib.nullcontext() if last == "text" else pytest.raises(GatewayCallFailed):
            sent("invoke", {"a": value})
        assert time.process_time() - began < 10


@given(st.lists(EVENTS, max_size=4), st.lists(st.floats(0, 1), max_size=4))
def test_events_are_sent_on_as_they_came(
    events: list[tuple[str, Any]], places: list[float]
) -> None:
    """However the network cuts them."""
    frames = [frame(kind, event) for kind, event in events]
    whole = b"".join(frames)
    cuts = sorted(int(place * len(whole)) for place in places)
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    read = list(aws_event_stream.messages(iter(parts), NOTHING))
    assert [event.content for event in read] == frames
    assert [(event.kind, event.data) for event in read] == events


@given(st.binary(max_size=40))
def test_a_stream_of_nonsense_is_refused(content: bytes) -> None:
    if content:
        with pytest.raises(GatewayCallFailed) as refused:
            list(aws_event_stream.messages(iter([content]), NOTHING))
        assert refused.value.status == 502


@given(JSON, st.sampled_from(("usage", "amazon-bedrock-invocationMetrics", "type", "message")))
def test_counts_are_counts(value: Any, name: str) -> None:
    counts = counts_of({name: value, "usage": {"inputTokens": value, "outputTokens": 2}})
    assert all(type(count) is int and count >= 0 for count in counts.values())
