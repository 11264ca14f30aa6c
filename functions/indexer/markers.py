"""Pending markers: which of them the records of a batch settle.

A marker is put before its write. It may go when all that is derived from the write is in the
table, which the record tells whose run item names the write. A write that never happened leaves
its marker; so does a record that was given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.repos.document import Owner
from mlcore.repos.runs.markers import OVERFLOW_WRITE_ID

ABANDONED_MS = 600_000
"""A request is over long before, and the clocks of two machines differ by less."""


def settled(run: Owner, record: Mapping[str, Any]) -> Key | None:
    """The marker of the write that a record shows. A write is shown by the record in which its id
    appears, and by no later one."""
    old, new = _last_write(record.get("OldImage")), _last_write(record.get("NewImage"))
    if new is None or new == old:
        return None
    return keys.pending(run[0], "run", run[1], new)


def worth_a_look(record: Mapping[str, Any]) -> int | None:
    """Once in a period of :data:`ABANDONED_MS`: the time (ms) before which markers of the run are
    abandoned, given that its records come in order."""
    created = record.get("ApproximateCreationDateTime")
    before = (record.get("OldImage") or {}).get("updated_at")
    if not isinstance(created, int | float) or before is None:
        return None
    now = int(created * 1000)
    if now // ABANDONED_MS == int(before["N"]) // ABANDONED_MS:
        return None
    return now - ABANDONED_MS


def abandoned(run: Owner, before_ms: int) -> list[Key]:
    """The markers of a run that were put before a time; one Query."""
    place = keys.run(*run)
    prefix = keys.pending_prefix("run", run[1])
    page = table.query(place.pk, prefix=prefix, attributes=["PK", "SK", "write_id", "updated_at"])
    return [Key(item["PK"]["S"], item["SK"]["S"]) for item in page.items if is_old(item, before_ms)]


def is_old(marker: Raw, before_ms: int) -> bool:
    """Whether a marker is that of a single write, and was put before a time."""
    if marker["write_id"]["S"] == OVERFLOW_WRITE_ID:
        return False
    return "updated_at" in marker and int(marker["updated_at"]["N"]) < before_ms


def _last_write(image: Raw | None) -> str | None:
    if image is None or "last_write" not in image:
        return None
    write_id: str = image["last_write"]["S"]
    return write_id
