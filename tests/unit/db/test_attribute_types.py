import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.attribute_types import DoubleAttribute, IntAttribute, TextMapAttribute


@given(st.floats())
def test_doubles_come_back_to_the_last_bit(value: float) -> None:
    attribute = DoubleAttribute()
    back = attribute.deserialize(attribute.serialize(value))
    assert (
        math.isnan(back) if math.isnan(value) else struct.pack("d", back) == struct.pack("d", value)
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (-0.0, "-0.0"),
        (1, "1.0"),
    ],
)
def test_doubles_are_written_as_mlflow_writes_them(value: float, text: str) -> None:
    assert DoubleAttribute().serialize(value) == text


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_integers_are_exact(number: int) -> None:
    attribute = IntAttribute()
    assert attribute.deserialize(attribute.serialize(number)) == number


TEXTS = st.dictionaries(*[st.text("ab=&%2563Dä\n") | st.text()] * 2)


@given(TEXTS)
def test_maps_of_texts_come_back(texts: dict[str, str]) -> None:
    attribute = TextMapAttribute()
    assert attribute.deserialize(attribute.serialize(texts)) == texts


@given(texts=TEXTS, other=st.text())
def test_maps_of_texts_come_back_in_either_form(texts: dict[str, str], other: str) -> None:
    attribute = TextMapAttribute()
    attribute.attr_name = "texts"
    as_map, as_text = attribute.raw(texts), {"S": attribute.text(texts)}
    for raw in (as_map, as_text):
        item = {"texts": raw}
        assert attribute.of(item) == texts
        assert attribute.like(item, texts) == raw
        read = attribute.reader(item)
        assert {key: read(key) for key in (*texts, other)} == {other: None, **texts}
    assert (attribute.is_text({"texts": as_map}), attribute.is_text({"texts": as_text})) == (
        False,
        True,
    )


def test_no_map_of_texts_is_an_empty_one() -> None:
    attribute = TextMapAttribute()
    attribute.attr_name = "texts"
    assert (attribute.of({}), attribute.is_text({})) == ({}, True)
    assert attribute.reader({})("a") is None
