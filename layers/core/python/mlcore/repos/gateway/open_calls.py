"""Counts the calls through the AI gateway that have not ended, in one item for each API key, user,
endpoint or workspace that has a limit of simultaneous calls.

A call has a lease (a time by which it must have ended): if its process dies, the call counts as
ended when the lease is over.
"""

from __future__ import annotations

import secrets
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.errors import TemporarilyUnavailable
from mlcore.models.gateway import GatewayOpenCalls

KEPT_SECONDS: Final = 24 * 3600
"""How long the item is kept after the end of the lease of the call that began last."""
_ATTEMPTS: Final = 4
"""Maximum attempts of a write. An attempt can fail although the limit is not reached, when leases
have ended."""
_SECOND_DIGITS: Final = 10


class OpenCallsReached(Exception):
    """As many gateway calls of a target are open as the limit of simultaneous calls allows; nothing
    was counted."""


def new_call(until: int) -> str:
    """Returns a new id for a call of the AI gateway, which contains the end of its lease.

    Args:
        until: when the lease ends, in seconds since 1970.
    """
    return f"{until:0{_SECOND_DIGITS}d}{secrets.token_hex(4)}"


def begin(target: str, call: str, limit: int, now: int) -> None:
    """Counts a call of the AI gateway as open, in one write; more if the limit is reached only by
    calls whose lease has ended. Repeating it has no further effect.

    Args:
        target: for what the calls are limited, such as ``user:ann``.
        call: the id of the call, as :func:`new_call` returns it.
        limit: the maximum number of open calls of the target.
        now: the time, in seconds since 1970.

    Raises:
        OpenCallsReached: ``limit`` calls are open. If several calls begin at the same time, exactly
            as many succeed as the limit allows.
        TemporarilyUnavailable: every attempt failed, although leases had ended.
    """
    key = keys.gateway_open_calls(target)
    for _ in range(_ATTEMPTS):
        update = Update()
        update.set(GatewayOpenCalls.type, keys.GATEWAY_OPEN_CALLS.name)
        update.set(GatewayOpenCalls.updated_at, now * 1000)
        update.set(GatewayOpenCalls.ttl, _end_of_lease(call) + KEPT_SECONDS)
        update.require_fewer_members(GatewayOpenCalls.calls, limit)
        update.add_members(GatewayOpenCalls.calls, [call])
        try:
            table.update(key, update)
        except ConditionFailed as failure:
            calls = _calls(failure)
            if call in calls:  # an earlier attempt of the same write
                return
            ended = [other for other in calls if _end_of_lease(other) <= now]
            if not ended:
                raise OpenCallsReached from None
            _delete(target, ended)
            continue
        return
    raise TemporarilyUnavailable("The limits of the gateway could not be checked. Try again.")


def end(target: str, call: str) -> None:
    """Counts a call of the AI gateway as ended, in one write. Repeating it has no further
    effect."""
    _delete(target, [call])


def open_at(calls: frozenset[str], now: int) -> int:
    """Returns how many AI gateway calls of a target of limits (a key, user, endpoint or workspace)
    are open: those whose lease has not ended.

    Args:
        calls: the ids of the calls in the target's item.
        now: the time, in seconds since 1970.
    """
    return sum(_end_of_lease(call) > now for call in calls)


def _calls(failure: ConditionFailed) -> frozenset[str]:
    if failure.item is None:
        return frozenset()
    return GatewayOpenCalls.of(failure.item).calls or frozenset()


def _delete(target: str, calls: list[str]) -> None:
    update = Update()
    update.require_exists(GatewayOpenCalls.calls)  # so that no item without a TTL is made
    update.delete_members(GatewayOpenCalls.calls, calls)
    try:
        table.update(keys.gateway_open_calls(target), update)
    except ConditionFailed:
        return  # no call is open


def _end_of_lease(call: str) -> int:
    return int(call[:_SECOND_DIGITS])
