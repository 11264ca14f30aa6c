"""An ``order_by`` is read in time in proportion to its length, or refused."""

from __future__ import annotations

import time

import pytest

from mlcore.errors import InvalidParameterValue
from mlcore.search import fields, grammar, trace_filter
from mlcore.search.grammar import MAX_ORDERING_CHARACTERS, MAX_ORDERINGS


def test_long_entries() -> None:
    began = time.process_time()
    longest = "a" * (MAX_ORDERING_CHARACTERS - len("metrics.``"))
    [order] = grammar.parse_order_by([f"metrics.`{longest}`"], fields.RUN)
    assert order.key == longest
    for text in ("metrics.`" + "a" * 5_000_000 + "`", "a " * 3_000_000, "'" * 5_000_000):
        for parse in (
            lambda text: grammar.parse_order_by([text], fields.RUN),
            lambda text: trace_filter.parse_order_by([text]),
            grammar.parse_direction,
        ):
            with pytest.raises(InvalidParameterValue, match="at most 2000 characters"):
                parse(text)
    assert time.process_time() - began < 5


def test_many_entries() -> None:
    texts = [f"tags.a{number}" for number in range(MAX_ORDERINGS)]
    assert len(grammar.parse_order_by(texts, fields.RUN)) == MAX_ORDERINGS
    assert len(trace_filter.parse_order_by(texts)) == MAX_ORDERINGS
    with pytest.raises(InvalidParameterValue, match="at most 100 order_by entries"):
        grammar.parse_order_by([*texts, "tags.b"], fields.RUN)
    with pytest.raises(InvalidParameterValue, match="at most 100 order_by entries"):
        trace_filter.parse_order_by([*texts, "tags.b"])
