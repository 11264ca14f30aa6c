"""Decides which runs are inactive (ended, deleted, or quiet: not written to for ten minutes, or for
seconds if very many runs of the experiment are marked), reads their derived items, and removes
their marks (the keys in LSI5 that say that the indexer has not processed them).

While a run is active, searches read its metrics from the run item. When it is inactive, the indexer
ranks its metrics (:mod:`indexer.ranks.rank_rows`), packs its history and removes its mark, on the
condition that the run has not changed since it was read. See ``docs/adr/0033``.

Only the consumer of the stream does this, one batch of a partition at a time: if two processes
indexed a run at the same time, one could remove items that the other has just put, and no mark
would remain to show it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from indexer.full_text import text_items
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import UPPER_BOUND, Key
from mlcore.db.table import key_of_item, table
from mlcore.entities.lifecycle_stages import DELETED
from mlcore.entities.runs import ENDED
from mlcore.models.base import Item
from mlcore.models.runs import Run
from mlcore.repos.document import Owner
from mlcore.repos.runs.core import index_keys, marks


class DerivedItems(NamedTuple):
    """A run's child items, without history, and ``FTS_REV`` items, as they are in the table."""

    children: Mapping[Key, Raw]
    reverse_items: Sequence[Raw]
    """``FTS_REV`` items."""


def is_ready(run: Run) -> bool:
    """Whether a run's metrics and history are to be indexed now: the run has a mark that is not
    permanent (the indexer has not processed it) and is ended, deleted or quiet."""
    return bool(marks.since(run)) and _is_inactive(run)


def is_active(run: Run) -> bool:
    """Whether a run's metrics are to be indexed later: the run has a mark (the indexer has not
    processed it), and is still written to."""
    return bool(marks.since(run)) and not _is_inactive(run)


def _is_inactive(run: Run) -> bool:
    return run.status in ENDED or run.stage == DELETED or run.quiet == run.version


def derived_items(run: Owner) -> DerivedItems:
    """Reads the child items of a run, without its history, and its ``FTS_REV`` items. Four Queries,
    more for a run with more than 1 MB of them."""
    experiment_id, run_id = run
    pk = keys.experiment(experiment_id).pk

    def prefix(kind: str) -> str:
        return keys.run_child_prefix(run_id, kind)

    ranges = (
        (prefix("INPUT"), prefix("LM") + UPPER_BOUND),
        keys.prefix_range(prefix("METRIC")),
        (prefix("PARAM"), prefix("TAG") + UPPER_BOUND),
    )
    children = {
        key_of_item(item): item for range_ in ranges for item in table.query_all(pk, between=range_)
    }
    return DerivedItems(children, reverse_items(run))


def reverse_items(run: Owner) -> list[Raw]:
    """Returns the ``FTS_REV`` items of a run, which list its words and values in the full-text
    index."""
    pk = keys.experiment(run[0]).pk
    return list(table.query_all(pk, prefix=keys.fts_rev_prefix(text_items.RUN, run[1])))


def is_same_child(item: Raw, other: Raw) -> bool:
    """Whether two child items are equal apart from ``ttl`` and ``updated_at``."""
    left_out = (Item.ttl.attr_name, Item.updated_at.attr_name)
    return {k: v for k, v in item.items() if k not in left_out} == {
        k: v for k, v in other.items() if k not in left_out
    }


def remove_mark(item: Run) -> None:
    """Removes the mark of a run (its key in LSI5) after the indexer has written the derived items
    of this version of the run.

    Does nothing if the run has been written since it was read: that write has a stream record of
    its own. A run with indexed values outside its item keeps a mark (:data:`marks.FOR_GOOD`). Any
    other run gets its primary metric as its key in LSI5, if the experiment has one.
    """
    mark = item.lsi5sk
    if mark is None:
        return
    update = Update()
    if marks.overflows(item):
        update.set(Run.lsi5sk, keys.lsi5_run_mark(item.run_id, marks.FOR_GOOD))
    elif (primary := index_keys.primary_metric(item)) is not None:
        update.set(Run.lsi5sk, primary)
    else:
        update.remove(Run.lsi5sk)
    if item.quiet is not None:
        update.remove(Run.quiet)
    update.require_equal(Run.version, item.version)
    update.require_equal(Run.lsi5sk, mark)
    with contextlib.suppress(ConditionFailed):
        table.update(Key(item.PK, item.SK), update)
