"""What a caller may send to Bedrock's own operations, whatever it sends."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlcore.errors import GatewayCallFailed
from mlcore.providers import event_stream
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


@given(st.lists(EVENTS, max_size=4), st.lists(st.floats(0, 1), max_size=4))
def test_events_are_sent_on_as_they_came(
    events: list[tuple[str, Any]], places: list[float]
) -> None:
    """However the network cuts them."""
    frames = [frame(kind, event) for kind, event in events]
    whole = b"".join(frames)
    cuts = sorted(int(place * len(whole)) for place in places)
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    read = list(event_stream.messages(iter(parts), NOTHING))
    assert [event.content for event in read] == frames
    assert [(event.kind, event.data) for event in read] == events


@given(st.binary(max_size=40))
def test_a_stream_of_nonsense_is_refused(content: bytes) -> None:
    if content:
        with pytest.raises(GatewayCallFailed) as refused:
            list(event_stream.messages(iter([content]), NOTHING))
        assert refused.value.status == 502


@given(JSON, st.sampled_from(("usage", "amazon-bedrock-invocationMetrics", "type", "message")))
def test_counts_are_counts(value: Any, name: str) -> None:
    counts = counts_of({name: value, "usage": {"inputTokens": value, "outputTokens": 2}})
    assert all(type(count) is int and count >= 0 for count in counts.values())
