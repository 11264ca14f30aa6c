"""Page tokens come back as they were given, and nothing else comes back at all."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import paging
from mlcore.errors import InvalidParameterValue

SCALARS = st.one_of(
    st.text(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
QUERIES = st.lists(st.text(), max_size=3)


@given(position=st.lists(SCALARS, max_size=6), query=QUERIES)
def test_a_position_comes_back(position: list[Any], query: list[str]) -> None:
    text = paging.token(position, query)
    assert text.isascii()
    restored = paging.position_of(text, query)
    assert restored == position
    assert restored is not None
    assert [type(value) for value in restored] == [type(value) for value in position]


def test_no_token_is_the_first_page() -> None:
    assert paging.position_of("", "query") is None


@given(position=st.lists(SCALARS, max_size=3), query=QUERIES, other=QUERIES)
def test_a_token_belongs_to_one_query(position: list[Any], query: Any, other: Any) -> None:
    text = paging.token(position, query)
    if query != other:
        with pytest.raises(InvalidParameterValue):
            paging.position_of(text, other)


@given(st.one_of(st.text(min_size=1), st.binary(min_size=1).map(lambda b: b.decode("latin-1"))))
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameterValue, match="Invalid page token"):
        paging.position_of(text, "query")


@given(st.binary())
def test_other_contents_are_refused(content: bytes) -> None:
    text = base64.urlsafe_b64encode(content).decode()
    if text:
        with pytest.raises(InvalidParameterValue, match="Invalid page token"):
            paging.position_of(text, "query")


FORGED: list[Any] = [
    None,
    [],
    {"a": 1},
    2**63 + 1,
    -(10**400),
    float("nan"),
    float("-inf"),
    "\ud800",
]


@pytest.mark.parametrize("value", FORGED)
def test_what_no_position_holds_is_refused(value: Any) -> None:
    good = paging.token(["a"], "query")
    digest, _ = json.loads(base64.urlsafe_b64decode(good))
    forged = base64.urlsafe_b64encode(json.dumps([digest, ["a", value]]).encode()).decode()
    with pytest.raises(InvalidParameterValue, match="Invalid page token"):
        paging.position_of(forged, "query")
