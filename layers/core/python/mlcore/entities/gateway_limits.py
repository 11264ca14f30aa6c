"""Limits of calls through the AI gateway, as the setting ``gateway_limits`` defines them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

SETTING: Final = "gateway_limits"
KEYS, USERS, ENDPOINTS, WORKSPACES = SCOPES = ("keys", "users", "endpoints", "workspaces")
"""The scopes of limits, narrowest first. They contain limits by the ids of API keys, names of
users, names or ids of endpoints, and names of workspaces."""
EACH: Final = "*"
"""Stands in place of a name for each key, user … that has no entry of its own."""


class CallLimits(NamedTuple):
    """Limits of the AI gateway for one key, user, endpoint or workspace: requests and tokens in a
    minute and in a day of UTC, and calls that may be open at the same time; None for no limit."""

    requests_per_minute: int | None = None
    requests_per_day: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None
    concurrent_calls: int | None = None

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit of tokens is set."""
        return self.tokens_per_minute is not None or self.tokens_per_day is not None

    @property
    def counts(self) -> bool:
        """Whether a limit of requests or tokens is set."""
        per_minute, per_day = self.requests_per_minute, self.requests_per_day
        return per_minute is not None or per_day is not None or self.counts_tokens


class GatewayLimits(NamedTuple):
    """All limits of a deployment's AI gateway, by scope (API keys, users, gateway endpoints,
    workspaces) and name."""

    by_scope: Mapping[str, Mapping[str, CallLimits]]

    def of(self, scope: str, *names: str) -> CallLimits | None:
        """Returns the AI gateway's limits for one API key, user, endpoint or workspace; None if no
        limit is set for it.

        Args:
            names: its possible names in the setting of the limits; the first name with an entry
                counts, else the entry ``*``.
        """
        entries = self.by_scope.get(scope, {})
        return next((entries[name] for name in (*names, EACH) if name in entries), None)


def parsed(value: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> GatewayLimits:
    """Makes the AI gateway's limits from the value of the setting ``gateway_limits``, which was
    checked before."""
    return GatewayLimits(
        {
            scope: {name: CallLimits(**limits) for name, limits in entries.items()}
            for scope, entries in value.items()
        }
    )
