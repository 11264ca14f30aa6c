"""Lists the limits of calls through the AI gateway, and how much of each has been used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlcore import ids
from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.entities.gateway_limits import (
    EACH,
    ENDPOINTS,
    KEYS,
    SCOPES,
    USERS,
    WORKSPACES,
    CallLimits,
    GatewayLimits,
)
from mlcore.gateway.rate_limits import target
from mlcore.http import Request
from mlcore.repos.gateway import configuration, limit_readings
from mlcore.repos.gateway.limit_readings import Reading
from mlcore.repos.gateway.usage import DAY_MS, MINUTE_MS
from mlcore.repos.settings import gateway_limits
from mlcore.repos.users import api_keys
from workspaces import messages as m

_Counted = tuple[str, str, str]
"""What a limit counts: the scope, the name to show, and the id or name in the counter's key."""


def list_limits(message: m.ListGatewayLimits, request: Request) -> dict[str, Any]:
    """Returns the AI gateway's limits that concern the caller: of the user, the user's API keys,
    the workspace, and the gateway endpoints in it that the caller may read. Administrators also get
    the limits of each key, user and workspace that the setting of the limits names. A caller who
    uses an API key with scopes gets only the limits of the key and of its endpoints.

    Returns:
        ``{"limits": [{"scope", "name", "<limit>": {"limit", "used"}, …}, …], "minute_ends_at",
        "day_ends_at"}`` with times in ms since 1970
    """
    known, now = gateway_limits.current(), ids.now_ms()
    limited = [
        (counted, limits)
        for counted in dict.fromkeys(_concerning(known, request))
        if (limits := known.of(counted[0], counted[2], counted[1])) is not None
    ]
    limited.sort(key=lambda pair: (SCOPES.index(pair[0][0]), pair[0][1]))
    readings = limit_readings.read([target(scope, of) for (scope, _, of), _ in limited], now)
    return {
        "limits": [
            {"scope": scope, "name": name, **_used(limits, reading)}
            for ((scope, name, _), limits), reading in zip(limited, readings, strict=True)
        ],
        "minute_ends_at": now // MINUTE_MS * MINUTE_MS + MINUTE_MS,
        "day_ends_at": now // DAY_MS * DAY_MS + DAY_MS,
    }


def _concerning(known: GatewayLimits, request: Request) -> Iterator[_Counted]:
    access = request.access
    if ENDPOINTS in known.by_scope:
        may_read = request.may_read(GATEWAY_ENDPOINT)
        for endpoint in configuration.read(request.workspace).endpoints.values():
            if may_read(endpoint.endpoint_id):
                yield ENDPOINTS, endpoint.name, endpoint.endpoint_id
    if access is not None and access.scopes is not None:
        yield KEYS, access.key_id, access.key_id
        return
    if access is None or access.sees_workspace(request.workspace):
        yield WORKSPACES, request.workspace, request.workspace
    if access is None:
        return
    yield USERS, access.username, access.username
    if KEYS in known.by_scope:
        for key in api_keys.find_all(access.profile().user):
            yield KEYS, key.key_id, key.key_id
    if access.is_admin:
        for scope in (KEYS, USERS, WORKSPACES):
            for name in known.by_scope.get(scope, {}):
                if name != EACH:
                    yield scope, name, name


def _used(limits: CallLimits, reading: Reading) -> dict[str, Any]:
    usage = reading.usage
    used = CallLimits(
        requests_per_minute=usage.minute_requests,
        requests_per_day=usage.day_requests,
        tokens_per_minute=usage.minute_tokens,
        tokens_per_day=usage.day_tokens,
        concurrent_calls=reading.open_calls,
    )
    return {
        name: {"limit": limit, "used": getattr(used, name)}
        for name, limit in limits._asdict().items()
        if limit is not None
    }
