"""Reads which runs of an experiment the indexer has not processed yet: those with a mark, a key in
LSI5. :mod:`.marks` says which writes set one.

A search must read the marks *before* the items that the indexer writes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from mlcore.db import keys
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.models.base import KEY, Item
from mlcore.models.runs import Run
from mlcore.repos.index_candidates import Entries
from mlcore.repos.runs.core import marks

MARKS_PAGE: Final = 10_000
"""One request reads as many marks as fit into 1 MB."""


class MarkedRuns:
    """All runs of an experiment that have a mark, also a permanent one. A search tests them beside
    those that it finds by items of the indexer."""

    def __init__(self, experiment_id: str) -> None:
        self._entries = Entries(
            experiment_id, index="LSI5", prefix=keys.lsi5_run_mark_prefix(), attributes=[Item.SK]
        )

    def reads(self) -> list[Callable[[], None]]:
        """Returns functions that read which runs the indexer has not processed. The caller runs
        them, in parallel with others, before it calls :meth:`runs`."""
        return [partial(self._entries.read_all, MARKS_PAGE)]

    def runs(self) -> set[Key]:
        return set(self._entries.candidate_keys())


def to_process(experiment_id: str) -> list[Key]:
    """Returns the keys of an experiment's runs that the indexer has still to process, oldest first
    if ids are ULIDs. Leaves out runs with a permanent mark, which a run has while it has indexed
    values in child items."""
    entries = table.query_all(
        keys.experiment(experiment_id).pk,
        index="LSI5",
        prefix=keys.lsi5_run_mark_prefix(),
        attributes=[*KEY, Run.lsi5sk],
    )
    return [key_of_item(entry) for entry in entries if marks.since(Run.of(entry))]
