"""Marks of runs that the indexer has not processed yet: which writes set one.

A mark is the run's key in LSI5, set by the write itself. A search reads the marks
(:mod:`.marked_runs`) before the items that the indexer writes, and reads the runs that have a mark
from their own items. A run keeps its mark at least until it ends or is not written to for some
seconds. Once the indexer has processed the run, its key in LSI5 is the value of its primary metric.
See ``docs/adr/0033``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlcore.db import keys
from mlcore.models.runs import Run

FOR_GOOD = 0
"""The version in a permanent mark: that of a run that has values in child items, whose changes come
as records of their own in the stream."""

INDEXED_MAPS = frozenset(("metrics", "params", "tags", "inputs"))
"""The maps of a run that searches look up in an index."""


def of_new(run_id: str) -> str:
    return keys.lsi5_run_mark(run_id, 1)


def after(
    item: Run, sets: Mapping[str, Mapping[str, str]], removals: Iterable[tuple[str, str]]
) -> str | None:
    """Returns the mark (the run's key in LSI5 that says that the indexer has to process it) to set
    with a write; None if the write changes nothing that is indexed. The mark contains the first
    version to process. It must be set even if it does not change, because the indexer may be
    removing it at the same time.

    Args:
        sets: values that the write sets, by map and key.
        removals: (map, key) pairs that it removes.
    """
    touched = {attribute for attribute, texts in sets.items() if texts}
    touched.update(attribute for attribute, _ in removals)
    if INDEXED_MAPS.isdisjoint(touched):
        return None
    if since(item):
        return item.lsi5sk
    return keys.lsi5_run_mark(item.run_id, item.version + 1)


def since(item: Run) -> int | None:
    """Returns the first version of a run that the indexer has to process, from the run's mark in
    LSI5; :data:`FOR_GOOD` for a permanent mark; None for a run without a mark."""
    return None if item.lsi5sk is None else keys.marked_since(item.lsi5sk)


def overflows(item: Run) -> bool:
    """Whether a run has indexed values in child items. Such a run stays marked as unprocessed,
    because the stream's record of its item does not show these values to the indexer."""
    return item.overflow is not None and not INDEXED_MAPS.isdisjoint(item.overflow.split())
