"""Cost of calls through the gateway, per window of each budget policy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.gateway import GatewaySpending

KEPT_SECONDS: Final = 7 * 24 * 3600
"""How long a window's item is kept after its end."""
_UNITS: Final = 1_000_000_000
"""Stored units per US dollar."""

Window = tuple[str, int]
"""A budget policy's id and the beginning of one of its windows, in ms since the epoch."""


def read(windows: Sequence[Window]) -> list[float]:
    """Returns US dollars spent in windows, in their order; strongly consistent, one BatchGetItem
    per hundred."""
    items = table.batch_get([keys.gateway_spending(*window) for window in windows])
    return [0.0 if raw is None else GatewaySpending.of(raw).spent / _UNITS for raw in items]


class Spending(NamedTuple):
    """What was spent in a window."""

    dollars: float
    announced: bool
    """Whether webhooks were told that the budget was exceeded."""


def add(window: Window, end_ms: int, dollars: float) -> Spending:
    """Adds US dollars to a window and returns the new total. A retried request may count twice: a
    budget may end calls early, never late."""
    update = Update()
    update.set(GatewaySpending.type, keys.GATEWAY_SPENDING.name)
    update.set(GatewaySpending.updated_at, now_ms())
    update.set(GatewaySpending.ttl, end_ms // 1000 + KEPT_SECONDS)
    update.add(GatewaySpending.spent, round(dollars * _UNITS))
    written = table.update(keys.gateway_spending(*window), update, returning=True)
    item = GatewaySpending.of(written)
    return Spending(item.spent / _UNITS, item.event is not None)


def announce_exceeded(window: Window, event: str) -> None:
    """Stores the announcement that a budget was exceeded in a window, from which the stream tells
    webhooks. Of several calls only the first has an effect."""
    update = Update()
    update.require_absent(GatewaySpending.event)
    update.set(GatewaySpending.event, event)
    with suppress(ConditionFailed):
        table.update(keys.gateway_spending(*window), update)
