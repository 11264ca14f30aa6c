"""Ranks come back as they were packed, and what is left of them after merges is what runs have."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.sortable import double_of_inverted_bits, inverted_double_bits
from mlcore.repos.runs.ranks import rank_columns
from mlcore.repos.runs.ranks.rank_columns import Ranked, RunRanks, UnknownRanks

NUMBER = st.integers(0, 2**63) | st.integers(0, 3)
PLACES = st.floats().map(inverted_double_bits)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
HEX_IDS = st.uuids().map(lambda uuid: uuid.hex)
# All of one kind, or mixed: ids that are 16 bytes in hex have a column of their own.
IDS = st.sampled_from([HEX_IDS, TEXTS, HEX_IDS.map(str.upper), HEX_IDS | TEXTS])


def ranked(ids: st.SearchStrategy[str]) -> st.SearchStrategy[list[Ranked]]:
    return st.lists(st.builds(Ranked, PLACES, ids, NUMBER, NUMBER), max_size=9)


def settled(ids: st.SearchStrategy[str]) -> st.SearchStrategy[list[RunRanks]]:
    places = st.dictionaries(TEXTS, PLACES, min_size=1, max_size=4)
    return st.lists(st.builds(RunRanks, ids, NUMBER, NUMBER, places), max_size=6)


def same_double(one: float, other: float) -> bool:
    """Every NaN is the same one, and -0.0 is not 0.0."""
    if math.isnan(one):
        return math.isnan(other)
    return struct.pack(">d", one) == struct.pack(">d", other)


@given(st.lists(st.floats()))
def test_places_are_the_order_of_values(values: list[float]) -> None:
    places = [inverted_double_bits(value) for value in values]
    for value, bits in zip(values, places, strict=True):
        assert 0 <= bits < 2**64
        assert same_double(value, double_of_inverted_bits(bits))
    in_order = [double_of_inverted_bits(bits) for bits in sorted(places)]
    numbers = [value for value in in_order if not math.isnan(value)]
    assert numbers == sorted(numbers, reverse=True)
    assert all(map(math.isnan, in_order[len(numbers) :]))


@given(IDS.flatmap(ranked))
def test_values_of_a_metric_come_back(entries: list[Ranked]) -> None:
    entries.sort()
    assert rank_columns.unpack(rank_columns.pack(entries)) == entries
    places = [entry.inverted_bits for entry in entries]
    assert rank_columns.unpack_places(rank_columns.pack_places(places)) == places


@given(IDS.flatmap(settled), st.sets(TEXTS, max_size=2))
def test_runs_come_back_by_metric(runs: list[RunRanks], others: set[str]) -> None:
    wanted: dict[str, list[Ranked]] = {}
    for run in runs:
        for key, bits in run.inverted_bits.items():
            wanted.setdefault(key, []).append(Ranked(bits, run.run_id, run.version, run.minute))
    data = rank_columns.pack_runs(runs)
    assert rank_columns.unpack_runs(data) == wanted
    for keys in (others, {*others, *list(wanted)[::2]}):
        unpack_values = rank_columns.unpack_values(data, keys)
        assert unpack_values == {
            key: [entry._replace(version=0, minute=0) for entry in entries]
            for key, entries in wanted.items()
            if key in keys
        }


@pytest.mark.parametrize("data", [b"", b"\x02" + rank_columns.pack([])[1:], b"\x00"])
def test_what_a_later_version_wrote_is_refused(data: bytes) -> None:
    with pytest.raises(UnknownRanks):
        rank_columns.unpack(data)
    with pytest.raises(UnknownRanks):
        rank_columns.unpack_runs(data)
    with pytest.raises(UnknownRanks):
        rank_columns.unpack_values(data, {"m"})


# A life of a run: how long after the write before (minutes), by how much the clock of the writer is
# ahead, and one of a few values. With each life versions begin anew.
LIFE = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 9]),
        st.integers(0, rank_columns.CLOCKS_MINUTES),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=4,
)


def written(lives: Iterable[list[tuple[int, int, int]]], run_id: str) -> list[Ranked]:
    """What is ranked of a run, in the order in which it is."""
    now, ranked = 1_000, []
    for life in lives:
        for version, (passed, ahead, bits) in enumerate(life, 1):
            now += passed
            ranked.append(Ranked(bits, run_id, version, now + ahead))
    return ranked


@given(
    lives=st.lists(st.lists(LIFE, min_size=1, max_size=3), min_size=1, max_size=2),
    data=st.data(),
)
def test_merges_never_lose_what_a_run_has(
    lives: list[list[list[tuple[int, int, int]]]], data: st.DataObject
) -> None:
    """Entries that were put in any number of lists, which are merged in any order."""
    of_runs = [written(each, f"run {number}") for number, each in enumerate(lives)]
    entries = [entry for each in of_runs for entry in each] * 2
    lists: list[list[Ranked]] = [[] for _ in range(4)]
    for entry in entries:
        lists[data.draw(st.integers(0, 3))].append(entry)
    while len(lists) > 1:
        merged = [*lists.pop(data.draw(st.integers(0, len(lists) - 1))), *lists.pop()]
        lists.append(rank_columns.current(data.draw(st.permutations(merged))))
        left = {
            (run.inverted_bits, run.run_id) for run in [*lists[-1], *(e for o in lists for e in o)]
        }
        assert all((each[-1].inverted_bits, each[-1].run_id) in left for each in of_runs)
    assert lists[0] == sorted(lists[0])
    assert set(lists[0]) <= set(entries)


@given(st.permutations(range(6)))
def test_what_a_run_had_before_goes(order: list[int]) -> None:
    """One value for each hour, and once more what it was at last."""
    entries = [Ranked(number, "a", number + 1, 60 * number) for number in range(6)]
    other = Ranked(3, "b", 1, 0)
    current = rank_columns.current([*(entries[number] for number in order), entries[-1], other])
    assert current == [other, entries[-1]]
