import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.attributes import DoubleAttribute, IntAttribute, TextMapAttribute


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


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_maps_of_texts_come_back(texts: dict[str, str]) -> None:
    attribute = TextMapAttribute()
    assert attribute.deserialize(attribute.serialize(texts)) == texts
