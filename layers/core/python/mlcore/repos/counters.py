"""Counters for small integer ids, which clients expect of users, roles and assignments."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.counters import Counter


def next_number(name: str) -> int:
    """Returns the next number of the series ``name``, which starts at 1. A number whose request
    fails is not given out again."""
    update = Update()
    update.set(Counter.type, keys.COUNTER.name)
    update.set(Counter.updated_at, now_ms())
    update.add(Counter.value, 1)
    return Counter.of(table.update(keys.counter(name), update, returning=True)).value
