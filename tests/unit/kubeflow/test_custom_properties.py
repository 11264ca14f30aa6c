"""Numbers in requests to Kubeflow's APIs are read or refused, and a property whose tag was
overwritten is a string."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from mlcore.errors import InvalidParameterValue
from mlcore.kubeflow import body, custom_properties, pages
from mlcore.kubeflow.custom_properties import BOOL, DOUBLE, INT, MEMBER, STRING, Property


def int_property(text: str) -> Any:
    data = {"k": {"metadataType": INT, MEMBER[INT]: text}}
    return custom_properties.parse(data)["k"].value


def page_size(text: str) -> int:
    return pages.order_of({"pageSize": text}).size


@pytest.mark.parametrize(
    ("read", "least"), [(body.number, None), (int_property, None), (page_size, 0)]
)
@given(st.text("+-0123456789", min_size=1, max_size=6))
@example("-+5")
@example("+5")
def test_a_number_is_read_or_refused(
    read: Callable[[str], Any], least: int | None, text: str
) -> None:
    if re.fullmatch("[+-]?[0-9]+", text):
        assert read(text) == (int(text) if least is None else max(least, int(text)))
    else:
        with pytest.raises(InvalidParameterValue):
            read(text)


@given(
    st.builds(Property, st.just(INT), st.integers(-(2**31), 2**31 - 1))
    | st.builds(Property, st.just(DOUBLE), st.floats(allow_nan=False, allow_infinity=False))
    | st.builds(Property, st.just(BOOL), st.booleans()),
    st.text(max_size=3),
)
@example(Property(BOOL, False), "no")
@example(Property(INT, 7), " 7")
def test_a_property_whose_tag_was_overwritten_is_a_string(value: Property, text: str) -> None:
    mark = custom_properties.mark(value)
    assert custom_properties.of_tag(value.text(), mark) == value
    if text != value.text():
        assert custom_properties.of_tag(text, mark) == Property(STRING, text)
