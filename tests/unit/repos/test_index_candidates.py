"""The race of index ranges: which are read to their ends, and how much is read in vain."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.expression import Raw
from mlcore.db.table import Page, table
from mlcore.repos import index_candidates
from mlcore.repos.index_candidates import FEW, NARROWING_SHARE, RUN_COST, Candidates, Entries

SIZES = st.integers(0, 3_000) | st.integers(0, 400)


class Index:
    """Key ranges, named by their prefixes, with numbered entries."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.ranges = {f"range {number}": size for number, size in enumerate(sizes)}
        self.pages: list[int] = []

    def query(self, _pk: str, *, start: Raw | None, limit: int, prefix: str) -> Page:
        begin = 0 if start is None else int(start["SK"]["S"])
        end = min(begin + limit, self.ranges[prefix])
        self.pages.append(end - begin)
        items: list[Raw] = [
            {"PK": {"S": "EXP#1"}, "SK": {"S": str(number + 1)}} for number in range(begin, end)
        ]
        return Page(items, None if end == self.ranges[prefix] else items[-1])


def raced(sizes: Sequence[int], runs: int) -> tuple[list[Candidates], list[Candidates]]:
    """Returns all competitors and those that ended."""
    index = Index([*sizes, runs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "query", index.query)
        patch.setattr(table, "parallel", lambda calls: [call() for call in calls])
        competitors = [
            Candidates("range", Entries("1", refer=sort_keys, prefix=prefix))
            for prefix in index.ranges
        ]
        *conditions, everything = competitors
        index_candidates.read_first_pages(conditions)
        return competitors, index_candidates.race(conditions, everything)


def sort_keys(items: list[Raw]) -> list[str]:
    return [item["SK"]["S"] for item in items]


@given(st.lists(SIZES, min_size=1, max_size=4), st.integers(301, 4_000))
def test_what_is_read_in_vain_is_a_share_of_what_is_needed(sizes: list[int], runs: int) -> None:
    competitors, ended = raced(sizes, runs)
    costs = [size * (1 + RUN_COST) for size in (*sizes, runs)]
    assert ended[0].done
    assert ended[0].cost == min(costs)
    for each in competitors:
        if not each.done:
            last_page = max(index_candidates.PAGE_IDS, each.seen * 3 // 4)
            assert each.seen <= min(costs) / NARROWING_SHARE + FEW + last_page


@given(st.integers(50, 400), st.data())
def test_a_condition_that_costs_little_narrows_down_another(runs: int, data: st.DataObject) -> None:
    """Both are read to their ends, so only what both refer to is read."""
    other = data.draw(st.integers(1, runs * RUN_COST // NARROWING_SHARE))
    _, ended = raced([runs, other], 10_000)
    assert sorted(each.seen for each in ended) == sorted([runs, other])
