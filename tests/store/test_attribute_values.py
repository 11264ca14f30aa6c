"""The sizes of values and items, as DynamoDB's documentation defines them ("Item sizes and
formats")."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from local.store.attribute_values import checked_values, size_of
from local.store.capacity import Capacity, entry_size
from local.store.schema import Schema
from tests.engines import table_definition

SCHEMA = Schema(table_definition("any"))

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_an_integer_takes_a_byte_for_each_two_digits_but_trailing_zeros(number: int) -> None:
    pairs, rest = 0, abs(number)
    while rest and rest % 100 == 0:
        rest //= 100
    while rest:
        pairs, rest = pairs + 1, rest // 100
    assert size_of({"N": str(number)}) == pairs + 1 + (number < 0)


@given(st.dictionaries(TEXTS, TEXTS, max_size=5))
def test_texts_take_the_bytes_of_utf_8(texts: dict[str, str]) -> None:
    values, size = checked_values({name: {"S": text} for name, text in texts.items()})
    assert size == sum(len((name + text).encode()) for name, text in texts.items())
    assert [size_of(value) for value in values.values()] == [
        len(text.encode()) for text in texts.values()
    ]


ITEMS = st.fixed_dictionaries(
    {},
    optional={
        name: st.integers(1, 2_000).map(lambda length: {"S": "x" * length})
        for name in (*SCHEMA.attributes, "data")
    },
)


@given(ITEMS, ITEMS)
def test_an_index_takes_units_for_the_entries_that_change(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    """Compared with the rules spelled out for one index at a time, whose sizes are those of its
    entries."""
    for name in SCHEMA.keys:
        old[name] = new[name] = {"S": "k"}
    capacity = Capacity(SCHEMA)
    capacity.add_write(old, new, checked_values(old)[1], checked_values(new)[1])
    consumed = capacity.answer("INDEXES") or {}
    taken = {
        **consumed.get("LocalSecondaryIndexes", {}),
        **consumed.get("GlobalSecondaryIndexes", {}),
    }
    expected = {}
    for index in SCHEMA.indexes.values():
        entries = []
        for item in (old, new):
            there = index.partition in item and index.sort in item
            names = item if index.projected is None else index.projected
            entries.append({name: item[name] for name in names if name in item} if there else None)
        before, after = entries
        units = [0 if e is None else -(-entry_size(index, e) // 1024) for e in entries]
        key = (index.partition, index.sort)
        if before is not None and after is not None and all(before[k] == after[k] for k in key):
            expected[index.name] = 0 if before == after else max(units)
        else:
            expected[index.name] = sum(units)
    assert {name: units["CapacityUnits"] for name, units in taken.items()} == {
        name: units for name, units in expected.items() if units
    }
