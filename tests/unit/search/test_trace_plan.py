"""What the indexes of traces are asked holds every trace that a filter finds."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mlcore.search import text_fields, text_tokens, trace_match, trace_plan
from mlcore.search.rlike import TimeBudget
from mlcore.search.run_plan import MAX_ACCESSES, NamePrefix, TextLookups
from mlcore.search.trace_filter import SPAN, TraceCondition, TraceFilter, parse_filter
from mlcore.search.trace_plan import TraceIds, TracesOfRun, WholeValues
from tests.unit.search.text_matches import found_by

CHARACTERS = 'abAé1f "\\\n%_{,'
PIECES = st.text(CHARACTERS, max_size=6)
PATTERNS = st.lists(PIECES, max_size=4).map("%".join)


@given(
    name=st.text(CHARACTERS, max_size=12),
    value=st.text(CHARACTERS, max_size=12),
    condition=st.builds(
        TraceCondition,
        st.just(SPAN),
        st.sampled_from(("name", "content", "attributes.k")),
        st.sampled_from(("=", "LIKE", "ILIKE")),
        PATTERNS,
    ),
    whole=st.booleans(),
)
def test_spans_that_match_hold_the_tokens(
    name: str, value: str, condition: TraceCondition, whole: bool
) -> None:
    if whole:
        condition = condition._replace(value=name if condition.key == "name" else f"%{value}%")
    assume(condition.key == "name" or condition.operator != "=")
    span = {"name": name, "attributes": {"k": json.dumps(value, ensure_ascii=False)}}
    content = json.dumps(span, ensure_ascii=False)
    node = ["id", 0, None, 0, None, None, name, None, None]
    if not trace_match.span_test((condition,), None, TimeBudget())(node, content):
        return
    for access in trace_plan.accesses(TraceFilter(spans=(condition,))):
        assert isinstance(access, TextLookups)
        assert access.field == text_fields.CONTENT
        held = text_tokens.word_tokens(content)
        for lookup in access.lookups:
            assert any(found_by(lookup, access.field, token) for token in held)


@pytest.mark.parametrize(
    ("filter_string", "wanted"),
    [
        ("name = 'a'", [NamePrefix("a", whole=True)]),
        ("name LIKE 'ab%'", [NamePrefix("ab", whole=False)]),
        ("request_id IN ('a', 'b')", [TraceIds(("a", "b"))]),
        ("client_request_id = 'a'", [WholeValues("client_request_id", ("a",))]),
        ("run_id = 'a'", [TracesOfRun("a")]),
        ("prompt = 'a/1'", [WholeValues("prompt", ("a/1",))]),
        ("metadata.mlflow.modelId = 'm'", [WholeValues("model_id", ("m",))]),
        ("name RLIKE 'abc'", []),
        ("name != 'abc'", []),
        ("status = 'OK'", []),
        ("tags.k IS NULL", []),
        ("feedback.k = 'abcd'", []),
        ("span.type = 'abcd'", []),
        ("trace.text LIKE '%12ab34%'", []),
    ],
)
def test_accesses(filter_string: str, wanted: list[object]) -> None:
    assert trace_plan.accesses(parse_filter(filter_string)) == wanted


def test_named_traces_come_first_and_many_values_are_not_looked_up() -> None:
    texts = " AND ".join(f"name = '{number}'" for number in range(30))
    first, *others = trace_plan.accesses(parse_filter(f"{texts} AND request_id IN ('a', 'b')"))
    assert (first, len(others)) == (TraceIds(("a", "b")), MAX_ACCESSES - 1)
    few = ", ".join(f"'{number}'" for number in range(60))
    repeated = ", ".join(200 * ["'a'"])
    filter_string = " AND ".join(f"client_request_id IN ({each})" for each in (few, few, repeated))
    assert [
        len(access.values)
        for access in trace_plan.accesses(parse_filter(filter_string))
        if isinstance(access, WholeValues)
    ] == [60, 1]


def test_texts_of_traces_are_asked_where_the_index_holds_them() -> None:
    before = text_fields.IndexedFields(["tags.*"])
    assert before.of_traces is None
    indexed = text_fields.parse_setting(["tags.*", "traces.tags.env", "traces.content"]).of_traces
    assert indexed is not None
    assert [indexed.covers(field) for field in ("name", "tags.env", "content", "run_id")] == [
        True
    ] * 4
    assert not indexed.covers("tags.other")
    assert not indexed.covers("metadata.env")
