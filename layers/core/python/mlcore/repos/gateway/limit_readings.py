"""Reads how much of their AI gateway limits API keys, users, endpoints and workspaces have used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.gateway import GatewayOpenCalls, GatewayUsage
from mlcore.repos.gateway import open_calls, usage
from mlcore.repos.gateway.usage import DAY_MS, MINUTE_MS, Usage

_NOTHING = Usage(0, 0, 0, 0)


class Reading(NamedTuple):
    usage: Usage
    """Without the tokens that open calls hold."""
    open_calls: int


def read(targets: Sequence[str], now: int) -> list[Reading]:
    """Returns how much each target of gateway limits, such as ``user:ann``, has used the AI gateway
    in the minute and the day of ``now`` (ms since 1970), and how many of its calls are open. One
    BatchGetItem per 50 targets, in parallel."""
    days = table.batch_get(
        [keys.gateway_usage(target, now // DAY_MS * DAY_MS) for target in targets]
        + [keys.gateway_open_calls(target) for target in targets]
    )
    return [
        Reading(_usage(day, now // MINUTE_MS * MINUTE_MS), _open(calls, now // 1000))
        for day, calls in zip(days[: len(targets)], days[len(targets) :], strict=True)
    ]


def _usage(item: Raw | None, minute: int) -> Usage:
    if item is None:
        return _NOTHING
    counted = usage.usage_of(GatewayUsage.of(item), minute)
    held = counted.held_tokens
    return counted._replace(
        minute_tokens=counted.minute_tokens - held, day_tokens=counted.day_tokens - held
    )


def _open(item: Raw | None, now: int) -> int:
    calls = None if item is None else GatewayOpenCalls.of(item).calls
    return open_calls.open_at(calls or frozenset(), now)
