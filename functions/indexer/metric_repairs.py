"""Repairs of METRIC and RANK items of metrics beside the indexer, which may have gone on meanwhile.

A RANK item is found again where the METRIC item says, or where the run's next record says that it
was (:mod:`indexer.settled`). One that a repair puts when that record was handled, and the METRIC
item says something else by then, would never be found: so a METRIC item is replaced only as it was
read, and RANK items are taken back that it does not name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from indexer import settled, text_dictionary
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import key_in, table
from mlcore.models.index import RankMetric
from mlcore.models.runs import RunMetric
from mlcore.repos.document import Owner


def replace(read: Raw | None, item: Raw) -> None:
    """Puts a METRIC item, unless there is another by now than was read (None: than none)."""
    as_read = Condition()
    if read is None:
        as_read.require_absent(RunMetric.PK)
    else:
        found = RunMetric.of(read)
        as_read.require_absent(RunMetric.outside)
        as_read.require_equal(RunMetric.value, found.value)
        as_read.require_equal(RunMetric.step, found.step)
        as_read.require_equal(RunMetric.timestamp, found.timestamp)
    with contextlib.suppress(ConditionFailed):
        table.put(item, as_read)


def take_back(run: Owner, ranks: Sequence[Raw]) -> None:
    """Removes RANK items that a repair has put, but those that the METRIC items name and those that
    the indexer has put anew. One BatchGetItem."""
    places = [keys.run_metric(run[0], run[1], RankMetric.of(rank).key) for rank in ranks]
    for rank, metric in zip(ranks, table.batch_get(places), strict=True):
        if metric is None or settled.ranked(run, RunMetric.of(metric)) != key_in(rank):
            text_dictionary.remove_as_read(rank)
