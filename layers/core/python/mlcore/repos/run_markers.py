"""Pending markers of runs: which writes the indexer may not have followed yet.

A search reads them before what the indexer writes; see ``docs/adr/0008``.
"""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Update, string
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.index import Pending
from mlcore.repos import document

OVERFLOW_WRITE_ID = "overflow"
"""Of the marker that stays: the run has values that have records of their own."""


def put(experiment_id: str, run_id: str, write_id: str) -> None:
    """Before the write: from now on a search looks at the run itself."""
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
    table.put(marker.serialize())


def drop(experiment_id: str, run_id: str, write_id: str) -> None:
    """For a write of which nothing was sent. Any other marker is the indexer's to take away."""
    table.delete(keys.pending(experiment_id, "run", run_id, write_id))


def show(run: Key, write_id: str) -> None:
    """Lets the indexer see a write of which something may have been sent, though nothing is left
    of it to write, so that it takes the marker away."""
    update = Update()
    document.touch(update)
    update.set("last_write", string(write_id))
    update.require_exists("PK")
    table.update(run, update)
