"""What a judge gets of a trace: retriever spans that are nested in no other retriever span."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mlcore import reserved_tags
from mlcore.entities.traces import Trace
from mlcore.judges import trace_content
from mlcore.judges.trace_content import Subject

TRACE = Trace("tr-1", "1", 0, None, "OK", None, None, None, {}, {})


def span(number: int, parent: int | None, *, retrieves: bool) -> dict[str, Any]:
    return {
        "span_id": f"{number:016x}",
        "parent_span_id": None if parent is None else f"{parent:016x}",
        "attributes": {
            reserved_tags.SPAN_TYPE: "RETRIEVER" if retrieves else "CHAIN",
            reserved_tags.SPAN_OUTPUTS: [{"page_content": str(number)}],
        },
    }


def is_nested(spans: list[dict[str, Any]], number: int) -> bool:
    by_id = {each["span_id"]: each for each in spans}
    above, seen = by_id[f"{number:016x}"]["parent_span_id"], set[str]()
    while above in by_id and above not in seen:
        if by_id[above]["attributes"][reserved_tags.SPAN_TYPE] == "RETRIEVER":
            return True
        seen.add(above)
        above = by_id[above]["parent_span_id"]
    return False


@given(st.lists(st.tuples(st.none() | st.integers(0, 9), st.booleans()), max_size=9))
def test_parents_may_be_missing_or_form_cycles(kinds: list[tuple[int | None, bool]]) -> None:
    spans = [
        span(number, parent, retrieves=retrieves)
        for number, (parent, retrieves) in enumerate(kinds)
    ]
    wanted = [
        (f"{number:016x}", [str(number)])
        for number, (_, retrieves) in enumerate(kinds)
        if retrieves and not is_nested(spans, number)
    ]
    assert trace_content.retrieved_texts(Subject(TRACE, tuple(spans))) == wanted


def test_a_long_chain_is_climbed_once() -> None:
    length = 40_000
    spans = [span(number, number + 1, retrieves=False) for number in range(length)]
    spans += [span(number, 0, retrieves=True) for number in range(length, 2 * length)]
    spans[length - 1]["parent_span_id"] = None
    began = time.process_time()
    assert len(trace_content.retrieved_texts(Subject(TRACE, tuple(spans)))) == length
    # To climb it for each span would take minutes.
    assert time.process_time() - began < 20


def test_text_of_an_output_in_many_lists() -> None:
    value: Any = "said"
    for _ in range(5000):
        value = [value]
    assert trace_content.output_text(value) == "said"
