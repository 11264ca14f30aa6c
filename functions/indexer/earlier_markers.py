"""Markers of writes as earlier versions put them beside runs, each an item: which of them are done
with.

Such a marker was put before its write, which has its id. It may go when all that is derived from
the write is in the table. A write that never happened has left its marker; so has a record that was
given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.db.expression import Raw
from mlcore.models.index import Pending
from mlcore.models.runs import Run
from mlcore.repos.runs.marks import OVERFLOW_WRITE_ID

ABANDONED_MS = 600_000
"""A request is over long before, and the clocks of two machines differ by less."""


def followed_write(record: Mapping[str, Any]) -> str | None:
    """The id of the write that a record shows. A write is shown by the record in which its id
    appears, and by no later one."""
    old, new = _last_write(record.get("OldImage")), _last_write(record.get("NewImage"))
    return None if new == old else new


def is_old(marker: Raw, before_ms: int) -> bool:
    """Whether a marker is that of a single write, and was put before a time."""
    pending = Pending.of(marker)
    if pending.write_id == OVERFLOW_WRITE_ID:
        return False
    return pending.updated_at is not None and pending.updated_at < before_ms


def _last_write(image: Raw | None) -> str | None:
    return None if image is None else Run.of(image).last_write
