"""Applies what the projections ask for: puts in batches, and removals that spare items with a value
of their own."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from indexer.projections import Writes
from mlcore.db.expression import Condition
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table


def apply(wanted: Iterable[Writes]) -> None:
    everything = list(wanted)
    table.batch_write(put for writes in everything for put in writes.puts)
    table.parallel([partial(_remove, key) for writes in everything for key in writes.deletes])


def _remove(key: Key) -> None:
    projected = Condition()
    projected.require_absent("outside")
    try:
        table.delete(key, projected)
    except ConditionFailed:
        return  # the key moved out of the source item; this item is where it lives now
