"""What calls through the gateway have cost, in each window of each budget policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.gateway import GatewaySpending

KEPT_SECONDS: Final = 7 * 24 * 3600
"""After a window's end."""
_UNITS: Final = 1_000_000_000
"""Of a US dollar."""

Window = tuple[str, int]
"""The id of a budget policy, and the beginning of one of its windows in ms."""


def read(windows: Sequence[Window]) -> list[float]:
    """US dollars, in the order asked; strongly consistent, one BatchGetItem for each hundred."""
    found = table.batch_get([keys.gateway_spending(*window) for window in windows])
    return [0.0 if raw is None else GatewaySpending.of(raw).spent / _UNITS for raw in found]


def add(window: Window, end_ms: int, dollars: float) -> float:
    """US dollars that are spent now. One that DynamoDB was asked for twice counts twice: a budget
    may end a call early, never late."""
    update = Update()
    update.set(GatewaySpending.type, keys.GATEWAY_SPENDING.name)
    update.set(GatewaySpending.updated_at, now_ms())
    update.set(GatewaySpending.ttl, end_ms // 1000 + KEPT_SECONDS)
    update.add(GatewaySpending.spent, round(dollars * _UNITS))
    written = table.update(keys.gateway_spending(*window), update, returning=True)
    return GatewaySpending.of(written).spent / _UNITS
