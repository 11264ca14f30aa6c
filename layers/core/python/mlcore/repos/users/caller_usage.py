"""Adds up the requests of callers over all processes: one item for each day of an API key, user or
workspace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import new_ulid, now_ms
from mlcore.models.users import CallerUsage

DAY_MS: Final = 24 * 3600 * 1000
KEPT_SECONDS: Final = 2 * 24 * 3600
"""How long a day's item is kept after its end."""


def totals(targets: Sequence[str], day: int) -> list[int]:
    """Returns, for each target, how many API requests of the day all processes have reported so
    far, in one round trip.

    Args:
        targets: whose requests are counted, such as ``user:ann``.
        day: beginning of the day in UTC, ms since 1970.
    """
    items = table.batch_get([keys.caller_usage(target, day) for target in targets])
    return [0 if item is None else CallerUsage.of(item).requests for item in items]


def add(target: str, day: int, requests: int) -> int:
    """Adds requests to a target's total of the day and returns the new total, in one write of one
    unit. If the answer to the write is lost and the write repeated, its requests count once; twice
    only if another call has added to the total in between.

    Args:
        target: for what requests are counted, such as ``user:ann``.
        day: beginning of the day in UTC, ms since 1970.
    """
    update = Update()
    update.set(CallerUsage.type, keys.CALLER_USAGE.name)
    update.set(CallerUsage.updated_at, now_ms())
    update.set(CallerUsage.ttl, (day + DAY_MS) // 1000 + KEPT_SECONDS)
    update.add(CallerUsage.requests, requests)
    addition = new_ulid()
    update.set(CallerUsage.last_addition, addition)
    update.require_absent_or_other(CallerUsage.last_addition, addition)
    try:
        item = table.update(keys.caller_usage(target, day), update, returning=True)
    except ConditionFailed as failed:
        if failed.item is None:
            raise
        item = failed.item  # as the first attempt of this write left it
    return CallerUsage.of(item).requests
