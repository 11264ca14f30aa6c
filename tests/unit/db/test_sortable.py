import math
import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlcore.db import sortable

INT64 = st.integers(-(2**63), 2**63 - 1)
NAN = math.nan
SUBNORMAL = 5e-324
DOUBLES = st.floats() | st.sampled_from(
    [0.0, -0.0, SUBNORMAL, -SUBNORMAL, math.inf, -math.inf, NAN]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text('#$%~! "\0\x1f\x7fab{}|é😀')


def rank(value: float) -> tuple[int, float, float]:
    """The order of doubles: -0.0 before 0.0, NaN last."""
    if math.isnan(value):
        return (1, 0.0, 0.0)
    return (0, value, math.copysign(1.0, value))


def bits(value: float) -> bytes:
    return struct.pack(">d", NAN if math.isnan(value) else value)


@given(INT64, INT64)
@example(-1, 0)
@example(-(2**63), 2**63 - 1)
def test_integers_have_their_order(first: int, second: int) -> None:
    assert (sortable.integer(first) < sortable.integer(second)) == (first < second)
    assert (sortable.int64_hex(first) < sortable.int64_hex(second)) == (first < second)


@given(INT64)
def test_integers_come_back(number: int) -> None:
    assert sortable.parse_integer(sortable.integer(number)) == number
    assert int(sortable.int64_hex(number), 16) - 2**63 == number
    assert len(sortable.integer(number)) == 20
    assert len(sortable.int64_hex(number)) == 16


def test_integers_look_like_numbers() -> None:
    assert sortable.integer(3) == "00000000000000000003"
    assert sortable.integer(-1) == "-9999999999999999999"


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_larger_integers_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="64-bit"):
        sortable.integer(number)
    with pytest.raises(ValueError, match="64-bit"):
        sortable.int64_hex(number)


@given(DOUBLES, DOUBLES)
@example(-0.0, 0.0)
@example(math.inf, NAN)
@example(-SUBNORMAL, SUBNORMAL)
def test_doubles_have_their_order(first: float, second: float) -> None:
    ordered = rank(first) < rank(second)
    assert (sortable.double(first) < sortable.double(second)) == ordered
    if not math.isnan(first) and not math.isnan(second):
        assert (sortable.inverted_double(first) > sortable.inverted_double(second)) == ordered


@given(DOUBLES)
def test_doubles_come_back(value: float) -> None:
    assert bits(sortable.parse_double(sortable.double(value))) == bits(value)
    assert bits(sortable.parse_inverted_double(sortable.inverted_double(value))) == bits(value)
    assert len(sortable.double(value)) == len(sortable.inverted_double(value)) == 16


@given(DOUBLES)
def test_nan_is_last_in_both_directions(value: float) -> None:
    assert sortable.double(value) <= sortable.double(NAN)
    assert sortable.inverted_double(value) <= sortable.inverted_double(NAN)


def test_every_nan_is_the_same() -> None:
    negative = struct.unpack(">d", b"\xff\xf8\0\0\0\0\0\1")[0]
    assert sortable.double(negative) == sortable.double(NAN)
    assert sortable.inverted_double(negative) == sortable.inverted_double(NAN)


@given(TEXTS, TEXTS)
@example("a", "ab")
@example("01J", "01J{")
def test_inverted_ids_have_the_opposite_order(first: str, second: str) -> None:
    assert (sortable.inverted_id(first) > sortable.inverted_id(second)) == (first < second)


@given(TEXTS)
def test_inverted_ids_come_back(text: str) -> None:
    assert sortable.parse_inverted_id(sortable.inverted_id(text)) == text
    assert sortable.inverted_id(text).isascii()


@given(TEXTS)
def test_escaped_texts_come_back(text: str) -> None:
    for escape in (sortable.escape, sortable.escape_ordered):
        assert sortable.unescape(escape(text)) == text
        assert "#" not in escape(text)


@given(TEXTS, TEXTS)
@example("a", "a#")
@example("#", "$")
@example('"', "#")
def test_escaped_texts_keep_their_order(first: str, second: str) -> None:
    assert (sortable.escape(first) < sortable.escape(second)) == (first < second)
    ended = sortable.escape_ordered(first) + "#", sortable.escape_ordered(second) + "#"
    assert (ended[0] < ended[1]) == (first < second)


@given(TEXTS, TEXTS)
def test_the_order_is_that_of_utf8(first: str, second: str) -> None:
    assert (first < second) == (first.encode() < second.encode())


def test_names_that_mlflow_allows_for_metrics_are_not_changed() -> None:
    assert sortable.escape("val/loss.x-1: a_b é") == "val/loss.x-1: a_b é"
