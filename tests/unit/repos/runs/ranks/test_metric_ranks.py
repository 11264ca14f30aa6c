"""A segment names the pages that have values of a stretch."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from indexer.ranks import rank_segments
from mlcore.repos.runs.ranks import metric_ranks
from mlcore.repos.runs.ranks.rank_columns import Ranked

PLACES = st.integers(0, 12) | st.sampled_from([2**63, 2**64 - 1])


@given(
    places=st.lists(PLACES, min_size=1, max_size=40),
    size=st.integers(1, 7),
    stretch=st.tuples(PLACES, PLACES),
)
def test_pages_of_a_stretch_have_all_of_it(
    places: list[int], size: int, stretch: tuple[int, int]
) -> None:
    first, last = sorted(stretch)
    entries = [Ranked(bits, f"{n:032x}", n, 7) for n, bits in enumerate(sorted(places))]
    with mock.patch.object(metric_ranks, "PAGE_ENTRIES", size):
        made = rank_segments.segment_items("1", "loss", 2, "5e6", entries)
    segment = metric_ranks.segment_of(made.segment)
    assert (segment.key, segment.level, segment.segment_id) == ("loss", 2, "5e6")
    assert segment.size == len(entries)
    pages = [metric_ranks.page_of(page) for page in made.pages]
    assert [entry for page in pages for entry in (segment.entries or ())] == []
    assert [*(segment.entries or ()), *(entry for page in pages for entry in page)] == entries
    assert len(segment.all_pages()) == len(pages)
    for number, page in enumerate(made.pages):
        page_key = segment.page_key("1", number)
        assert (page["PK"]["S"], page["SK"]["S"]) == page_key
    named = segment.pages(first, last)
    assert set(named) <= set(segment.all_pages())
    results = [*(segment.entries or ()), *(entry for number in named for entry in pages[number])]
    wanted = metric_ranks.within(entries, first, last)
    assert metric_ranks.within(results, first, last) == wanted
    # At most one page on either side has none of it.
    useless = [number for number in named if not metric_ranks.within(pages[number], first, last)]
    assert len(useless) <= 1
