"""Pending markers of runs: which writes the indexer may not have followed yet.

A search reads them before what the indexer writes; see ``docs/adr/0008``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.ids import created_ms, now_ms
from mlcore.models.index import Pending
from mlcore.models.runs import Run as RunItem
from mlcore.repos import document
from mlcore.repos.document import Document

OVERFLOW_WRITE_ID = "overflow"
"""Of the marker that stays: the run has values that have records of their own."""

RENEWED_MS = 120_000
"""Far less than the time after which the indexer takes a marker for abandoned."""

INDEXED_MAPS = frozenset(("metrics", "params", "tags", "inputs"))
"""The maps of a run that searches ask an index about."""


def item(experiment_id: str, run_id: str, write_id: str) -> Raw:
    place = keys.pending(experiment_id, "run", run_id, write_id)
    marker = Pending(
        PK=place.pk,
        SK=place.sk,
        entity_type="run",
        entity_id=run_id,
        write_id=write_id,
        updated_at=now_ms(),
        version=1,
    )
    return dict(marker.serialize())


def put(experiment_id: str, run_id: str, write_id: str) -> None:
    """Before the write: from now on a search looks at the run itself."""
    table.put(item(experiment_id, run_id, write_id))


def needed(sets: Mapping[str, Mapping[str, str]], removals: Iterable[tuple[str, str]]) -> bool:
    """Whether the indexer has to follow a write."""
    touched = {attribute for attribute, texts in sets.items() if texts}
    touched.update(attribute for attribute, _ in removals)
    return not INDEXED_MAPS.isdisjoint(touched)


def renew(run: Document, write_id: str) -> None:
    """Right before the write: a marker of long ago, such as that of a laptop that slept in the
    middle of a request, may have been taken away as abandoned."""
    if now_ms() - created_ms(write_id) > RENEWED_MS:
        experiment_id, run_id = run.owner
        put(experiment_id, run_id, write_id)


def put_overflow(run: Document, sets: Mapping[str, Mapping[str, str]]) -> None:
    """A run with texts outside its item is pending for good: the indexer learns of those from other
    records than of the write, or never."""
    if INDEXED_MAPS.isdisjoint(run.overflowed) and document.spills(run, sets):
        experiment_id, run_id = run.owner
        put(experiment_id, run_id, OVERFLOW_WRITE_ID)


def drop(experiment_id: str, run_id: str, write_id: str) -> None:
    """For a write of which nothing was sent. Any other marker is the indexer's to take away."""
    table.delete(keys.pending(experiment_id, "run", run_id, write_id))


def show(run: Key, write_id: str) -> None:
    """Lets the indexer see a write of which something may have been sent, though nothing is left
    of it to write, so that it takes the marker away."""
    update = Update()
    document.touch(update)
    update.set(RunItem.last_write, write_id)
    update.require_exists(RunItem.PK)
    table.update(run, update)
