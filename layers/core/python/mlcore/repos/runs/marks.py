"""Marks of runs that the indexer has not followed yet: which writes leave one.

A mark is the run's key in LSI5, set by the write itself; a search reads the marks before what the
indexer writes, and the marked runs from their source. While a run goes on its mark stays. Once the
indexer has followed the run, its key there is that of its primary metric. See ``docs/adr/0033``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlcore.db import keys
from mlcore.models.runs import Run

OVERFLOW_WRITE_ID = "overflow"
"""Of an item that marked, in earlier versions, a run with values that have records of their own."""

FOR_GOOD = 0
"""The version of a mark that stays: the run has values that have records of their own."""

INDEXED_MAPS = frozenset(("metrics", "params", "tags", "inputs"))
"""The maps of a run that searches ask an index about."""


def of_new(run_id: str) -> str:
    return keys.lsi5_run_mark(run_id, 1)


def after(
    item: Run, sets: Mapping[str, Mapping[str, str]], removals: Iterable[tuple[str, str]]
) -> str | None:
    """The mark that a write of these leaves; None if the indexer need not follow it. It says
    which version is the first to be followed, and must be set even where it is the same: the
    indexer may just be taking it away."""
    touched = {attribute for attribute, texts in sets.items() if texts}
    touched.update(attribute for attribute, _ in removals)
    if INDEXED_MAPS.isdisjoint(touched):
        return None
    if since(item):
        return item.lsi5sk
    return keys.lsi5_run_mark(item.run_id, item.version + 1)


def since(item: Run) -> int | None:
    """The first version that is to be followed; :data:`FOR_GOOD` where none is, though the run is
    marked; None for a run without a mark."""
    return None if item.lsi5sk is None else keys.marked_since(item.lsi5sk)


def overflows(item: Run) -> bool:
    """Whether a run has indexed texts outside its item: it stays marked for good, because the
    indexer learns of those from other records than of the write, or never."""
    return item.overflow is not None and not INDEXED_MAPS.isdisjoint(item.overflow.split())
