"""Small whole numbers for what clients expect to have one: users, roles, assignments."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.platform import Counter


def next_number(name: str) -> int:
    """The next number of a series that starts at 1. A failed request leaves a gap."""
    update = Update()
    update.set(Counter.type, keys.COUNTER.name)
    update.set(Counter.updated_at, now_ms())
    update.add(Counter.value, 1)
    return Counter.of(table.update(keys.counter(name), update, returning=True)).value
