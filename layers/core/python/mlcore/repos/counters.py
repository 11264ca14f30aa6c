"""Small whole numbers for what clients expect to have one: users, roles, assignments."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import Update, number, string
from mlcore.db.table import table
from mlcore.ids import now_ms


def next_number(name: str) -> int:
    """The next number of a series that starts at 1. A failed request leaves a gap."""
    update = Update()
    update.set("type", string(keys.COUNTER.name))
    update.set("updated_at", number(now_ms()))
    update.add("value", 1)
    item = table.update(keys.counter(name), update, returning=True)
    return int(item["value"]["N"])
