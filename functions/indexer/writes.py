"""Applies what the projections ask for: puts in batches, and puts and removals that spare items
with a value of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from functools import partial

from indexer.projections import Writes
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table


def apply(wanted: Iterable[Writes]) -> None:
    """Puts first, removals after: whoever reads an index in between finds an entity twice, and
    never not at all, but for what is to be taken away before."""
    everything = list(wanted)
    table.batch_write(deletes=_once(key for writes in everything for key in writes.before))
    table.batch_write(put for writes in everything for put in writes.puts)
    table.batch_write(put for writes in everything for put in writes.after)
    calls: list[Callable[[], None]] = []
    calls += [partial(_put, item) for writes in everything for item in writes.careful_puts]
    calls += [partial(_remove, key) for writes in everything for key in writes.deletes]
    table.parallel(calls)
    table.batch_write(deletes=_once(key for writes in everything for key in writes.removals))


def _once(keys: Iterable[Key]) -> list[Key]:
    """A batch names no item twice."""
    return list(dict.fromkeys(keys))


def _put(item: Raw) -> None:
    with contextlib.suppress(ConditionFailed):
        table.put(item, _projected())


def _remove(key: Key) -> None:
    with contextlib.suppress(ConditionFailed):
        table.delete(key, _projected())


def _projected() -> Condition:
    """Fails where the key moved out of the source item: the item there is where it lives now."""
    projected = Condition()
    projected.require_absent("outside")
    return projected
