"""Facts and sums of spans, whatever the order."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from mlcore.spans import trace_facts, trace_totals
from mlcore.spans.stored_span import StoredSpan
from mlcore.spans.trace_facts import SpanFacts
from mlcore.wire.times import duration, parse_duration, parse_point, point
from traces.ingest import otlp, span_conversion


def span(number: int, parent: int, attributes: dict[str, str]) -> StoredSpan:
    return span_conversion.to_stored(
        otlp.Span(
            b"\1" * 16,
            number.to_bytes(8, "big"),
            parent.to_bytes(8, "big") if parent else b"",
            "s",
            number % 3,
            number % 5,
            dict(attributes),
            [],
            [],
            0,
            "",
            0,
        )
    )


ATTRIBUTES = st.dictionaries(
    st.sampled_from(["session.id", "user.id", "mlflow.spanInputs", "mlflow.traceTag.t"]),
    st.sampled_from(["a", "b"]),
)
SPANS = st.lists(
    st.tuples(st.integers(1, 20), st.sampled_from([0, 1]), ATTRIBUTES),
    min_size=1,
    max_size=8,
    unique_by=lambda fields: fields[0],
)


@given(SPANS, st.randoms())
def test_facts_do_not_depend_on_the_order(
    drawn: list[tuple[int, int, dict[str, str]]], chance: random.Random
) -> None:
    made = [(span(*fields), {"service": f"s{fields[0] % 2}"}) for fields in drawn]
    expected = trace_facts.facts_of_spans(made)
    shuffled = [*made, *chance.sample(made, chance.randrange(len(made)))]
    chance.shuffle(shuffled)
    joined: SpanFacts | None = None
    while shuffled:
        cut = chance.randrange(len(shuffled)) + 1
        facts_of_spans, shuffled = trace_facts.facts_of_spans(shuffled[:cut]), shuffled[cut:]
        joined = (
            facts_of_spans
            if joined is None
            else trace_facts.join(trace_facts.parse(joined.text) or facts_of_spans, facts_of_spans)
        )
    assert joined is not None
    assert joined.text == expected.text
    assert trace_facts.parse(expected.text) == trace_facts.parse(joined.text)


def test_a_parent_stands_for_its_children() -> None:
    amounts = {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5}
    parts = [
        trace_totals.SpanAmounts("root", None, 9, None),
        trace_totals.SpanAmounts("agent", "root", 8, amounts),
        trace_totals.SpanAmounts("call", "agent", 7, amounts),
        trace_totals.SpanAmounts("other", "root", 6, {**amounts, "cache_read_input_tokens": 1}),
        trace_totals.SpanAmounts("orphan", "elsewhere", 5, amounts),
    ]
    assert trace_totals.total_tokens(parts) == {
        "input_tokens": 6,
        "output_tokens": 9,
        "total_tokens": 15,
        "cache_read_input_tokens": 1,
    }
    assert trace_totals.total_cost(parts[:1]) == {}


@given(st.integers(-62135596800000, 253402300799999))
def test_points_in_time(milliseconds: int) -> None:
    assert parse_point(point(milliseconds), "t") == milliseconds


@given(st.integers(-(10**14), 10**14))
def test_durations(milliseconds: int) -> None:
    assert parse_duration(duration(milliseconds), "d") == milliseconds


def test_protobufs_own_forms() -> None:
    assert point(1795245515950) == "2026-11-21T07:18:35.950Z"
    assert point(1000) == "1970-01-01T00:00:01Z"
    assert duration(1) == "0.001s"
    assert duration(-2000) == "-2s"
    assert parse_point("1970-01-01T02:00:00+01:00", "t") == 3_600_000
