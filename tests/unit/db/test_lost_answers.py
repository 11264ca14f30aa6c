"""A failed condition after a lost answer: the own write is recognized, another writer's is not."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.lost_answers import LeftBy, change_of, execute, is_absent, put_of
from mlcore.models.runs import Run

RAW = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, st.text(max_size=3)),
        st.builds(lambda number: {"N": str(number)}, st.integers(-9, 9)),
        st.builds(lambda number: {"N": f"{number}.0"}, st.integers(-9, 9)),
        st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
        st.builds(lambda texts: {"SS": sorted(texts)}, st.sets(st.text(max_size=2), min_size=1)),
    ),
    lambda values: st.one_of(
        st.builds(lambda raws: {"L": raws}, st.lists(values, max_size=2)),
        st.builds(lambda raws: {"M": raws}, st.dictionaries(st.text(max_size=2), values)),
    ),
    max_leaves=4,
)
ITEMS = st.dictionaries(st.sampled_from("abc"), RAW, min_size=1)
KEYS = st.sampled_from("kl")


def respelled(raw: Any) -> Any:
    """The same value as DynamoDB may return it."""
    if isinstance(raw, list):
        return [respelled(value) for value in raw]
    if not isinstance(raw, dict):
        return raw
    return {
        name: value.removesuffix(".0")
        if name == "N" and isinstance(value, str)
        else value[::-1]
        if name == "SS" and isinstance(value, list)
        else respelled(value)
        for name, value in raw.items()
    }


def recognized(stored: Raw | None, left_by: LeftBy, *, is_lost: bool = True) -> bool:
    def write() -> Raw:
        raise ConditionFailed(stored, may_be_own=is_lost)

    try:
        execute(write, left_by)
    except ConditionFailed:
        return False
    return True


@given(ITEMS, ITEMS)
def test_an_item_that_was_put(item: Raw, another: Raw) -> None:
    assert recognized(respelled(item), put_of(item))
    assert not recognized(respelled(item), put_of(item), is_lost=False)
    assert not recognized(None, put_of(item))
    assert recognized(another, put_of(item)) is (respelled(another) == respelled(item))


@given(ITEMS)
def test_an_item_that_was_deleted(item: Raw) -> None:
    assert recognized(None, is_absent)
    assert not recognized(None, is_absent, is_lost=False)
    assert not recognized(item, is_absent)


@given(st.integers(1, 3), st.integers(1, 3), st.text(), st.text(), KEYS, KEYS)
def test_an_update(
    version: int, required: int, name: str, tag: str, key: str, removed_key: str
) -> None:
    update = Update()
    update.set(Run.run_name, name)
    update.remove(Run.ttl)
    update.set((Run.tags, key), tag)
    if removed_key != key:
        update.remove((Run.tags, removed_key))
    update.add(Run.version, 1)
    update.require_equal(Run.version, required)
    item = {
        "version": {"N": str(version)},
        "tags": {"M": {"k": {"S": "old"}, "l": {"S": "old"}}},
        "ttl": {"N": "7"},
    }
    assert recognized(update.applied(item), change_of(update)) is (version == required)
    assert not recognized(item, change_of(update))
    assert not recognized(None, change_of(update))
    for path, other in (("run_name", {"S": f"{name}!"}), ("ttl", {"N": "7"}), ("tags", {"M": {}})):
        assert not recognized({**update.applied(item), path: other}, change_of(update))


def test_a_number_without_a_condition_says_nothing() -> None:
    update = Update()
    update.add(Run.version, 1)
    assert not recognized({"version": {"N": "1"}}, change_of(update))
