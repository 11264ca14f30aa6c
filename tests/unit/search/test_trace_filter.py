from __future__ import annotations

import pytest

from mlcore.errors import InvalidParameterValue
from mlcore.search.grammar import OrderBy
from mlcore.search.trace_filter import (
    SPAN_TOLERANCE,
    TraceCondition,
    TraceFilter,
    parse_filter,
    parse_order_by,
)


def test_conditions_by_what_decides_them() -> None:
    parsed = parse_filter(
        "name LIKE 'a%' AND run_id = 'r' AND span.type IN ('LLM', 'TOOL') AND trace.text ILIKE 'x'"
        " AND feedback.`is ok` IS NOT NULL AND metadata.`k.l` != 'v' AND timestamp >= 10"
        " AND timestamp_ms < 20"
    )
    assert parsed == TraceFilter(
        own=(
            TraceCondition("tag", "mlflow.traceName", "LIKE", "a%"),
            TraceCondition("request_metadata", "k.l", "!=", "v"),
            TraceCondition("attribute", "timestamp_ms", ">=", 10),
            TraceCondition("attribute", "timestamp_ms", "<", 20),
        ),
        runs=("r",),
        assessed=(TraceCondition("feedback", "is ok", "IS NOT NULL", None),),
        spans=(
            TraceCondition("span", "type", "IN", ("LLM", "TOOL")),
            TraceCondition("span", "content", "ILIKE", "x"),
        ),
        earliest=10,
        latest=19,
        spans_from=(10 - SPAN_TOLERANCE) * 1_000_000,
    )
    assert parse_filter("").everything


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("timestamp_ms > 1.5", (2, None)),
        ("timestamp_ms < 1.5", (None, 1)),
        ("timestamp_ms = 7", (7, 7)),
        ("timestamp_ms > 1e400", (2**64 + 1, None)),
        ("timestamp_ms != 3", (None, None)),
    ],
)
def test_bounds_of_the_time(text: str, bounds: tuple[int | None, int | None]) -> None:
    parsed = parse_filter(text)
    low, high = bounds
    assert (parsed.earliest, parsed.latest) == (
        -(2**63) if low is None else low,
        2**63 - 1 if high is None else high,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("span.name like 'a'", "span.name comparator 'like' not one of"),
        ("feedback.x > '5'", "Expected a numeric value for feedback when using comparator '>'."),
        ("prompt = 'p'", "Invalid prompts filter value 'p'."),
        ("issue.id != 'a'", "issue.id comparator '!=' not one of '{'='}'"),
        ("span.`size` = 'a'", "Invalid span attribute 'size'."),
        ("span.attributes. = 'a'", "Span attribute name cannot be empty after 'attributes.'"),
        ("status = ('a')", "Invalid comparator '=' for value"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(InvalidParameterValue) as refused:
        parse_filter(text)
    assert refused.value.message.startswith(message)


def test_orders() -> None:
    assert parse_order_by(["timestamp DESC", "timestamp_ms", "tags.`a b`", "name asc"]) == (
        OrderBy("attribute", "timestamp_ms", False),
        OrderBy("tag", "a b", True),
        OrderBy("tag", "mlflow.traceName", True),
    )
    for text in ("span.name", "tags.text", "metadata.`mlflow.trace.cost`", "end"):
        with pytest.raises(InvalidParameterValue):
            parse_order_by([text])
