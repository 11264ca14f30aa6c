"""Cost of model calls through the gateway: US dollars per window (period) of each budget policy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import new_ulid, now_ms
from mlcore.models.gateway import GatewaySpending

KEPT_SECONDS: Final = 7 * 24 * 3600
"""How long a window's item is kept after its end."""
_UNITS: Final = 1_000_000_000
"""Stored units per US dollar."""

Window = tuple[str, int]
"""A budget policy's id and the beginning of one of its windows, in ms since the epoch."""


def read(windows: Sequence[Window]) -> list[float]:
    """Returns the US dollars spent in each window (period of a budget policy), in the order of the
    windows; strongly consistent, one BatchGetItem per hundred."""
    items = table.batch_get([keys.gateway_spending(*window) for window in windows])
    return [0.0 if raw is None else GatewaySpending.of(raw).spent / _UNITS for raw in items]


class WindowSpending(NamedTuple):
    """The amounts in the item of a window (period of a budget policy), in billionths of a US
    dollar."""

    spent: int
    earlier: int
    """The part of ``spent`` that calls before the policy was written have cost."""


NOTHING: Final = WindowSpending(0, 0)


def counted(window: Window) -> WindowSpending:
    """Returns the amounts that the item of a window (period of a budget policy) has counted; 0 if
    there is no item. One strongly consistent GetItem."""
    raw = table.get(keys.gateway_spending(*window))
    if raw is None:
        return NOTHING
    item = GatewaySpending.of(raw)
    return WindowSpending(item.spent, item.earlier or 0)


def add_earlier(window: Window, end_ms: int, dollars: float, before: WindowSpending) -> bool:
    """Adds to a window (period of a budget policy) the cost of the calls that were made in it
    before the policy was written, as far as the window has not counted it yet.

    Args:
        end_ms: the end of the window, in milliseconds since the epoch.
        dollars: the cost of all these calls.
        before: what the window had counted (:func:`counted`) when the caller read it: before the
            policy was written or, after an attempt that returned False, again.

    Returns:
        False, and nothing is added, if another process has added such a cost since ``before`` was
            read.
    """
    units = round(dollars * _UNITS) - before.spent
    if units <= 0:
        return True
    update = _new_update(end_ms)
    update.require_absent_or_equal(GatewaySpending.earlier, before.earlier)
    update.set(GatewaySpending.earlier, before.earlier + units)
    update.add(GatewaySpending.spent, units)
    try:
        table.update(keys.gateway_spending(*window), update)
    except ConditionFailed:
        return False
    return True


class Spending(NamedTuple):
    """The amount spent in one window (period) of a budget policy."""

    dollars: float
    announced: bool
    """Whether the event for webhooks that the budget was exceeded was stored."""


def add(window: Window, end_ms: int, dollars: float) -> Spending:
    """Adds US dollars to the spending of a window (period of a budget policy) and returns the new
    total. If the answer to the write is lost and the write repeated, it counts once; twice only if
    another process has counted a call in between. So the total may be too high, never too low."""
    addition = new_ulid()
    update = _new_update(end_ms)
    update.add(GatewaySpending.spent, round(dollars * _UNITS))
    update.set(GatewaySpending.last_addition, addition)
    update.require_absent_or_other(GatewaySpending.last_addition, addition)
    try:
        written = table.update(keys.gateway_spending(*window), update, returning=True)
    except ConditionFailed as failed:
        if failed.item is None:
            raise
        written = failed.item  # as the first attempt of this write left it
    item = GatewaySpending.of(written)
    return Spending(item.spent / _UNITS, item.event is not None)


def announce_exceeded(window: Window, event: str) -> None:
    """Stores, in the item of a window (period of a budget policy), the event for webhooks that the
    budget was exceeded. The indexer reads it from the stream. Does nothing if the window has such
    an event already."""
    update = Update()
    update.require_absent(GatewaySpending.event)
    update.set(GatewaySpending.event, event)
    with suppress(ConditionFailed):
        table.update(keys.gateway_spending(*window), update)


def _new_update(end_ms: int) -> Update:
    update = Update()
    update.set(GatewaySpending.type, keys.GATEWAY_SPENDING.name)
    update.set(GatewaySpending.updated_at, now_ms())
    update.set(GatewaySpending.ttl, end_ms // 1000 + KEPT_SECONDS)
    return update
