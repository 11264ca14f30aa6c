"""Callers who log in by an API key, and the limits of keys with scopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore.auth.scopes import decoded
from mlcore.policies.access import Access

_OPEN: Final = frozenset({"requests.anybody", "requests.public"})
"""Policies for every user. The functions behind them show only what the caller may read."""

CLOSED: Final = frozenset(
    {
        "/2.0/mlflow/experiments/update",
        "/2.0/mlflow/gateway-proxy",
        "/2.0/mlflow/registered-models/rename",
        "/2.0/preview/mlflow/registered-models/rename",
    }
)
"""Paths that no scope opens: new names would leave the scope, and the proxy calls other servers."""


class KeyRoute(NamedTuple):
    """What limits keys with scopes at a route."""

    path: str = ""
    policy: str = ""
    """Its name."""
    reads: bool = False
    """Whether the route only reads."""


def key_caller(claims: Mapping[str, Any], workspace: str) -> Access:
    """Returns the caller from the authorizer's answer about an API key.

    The answer names the owner as ``key_user`` and not as ``username``: a function of a release that
    does not know scopes finds no caller, instead of one with all rights.
    """
    text = str(claims.get("scopes") or "")
    limits = decoded(text) if text else None
    scopes = None if limits is None else limits.scopes if limits.workspace == workspace else ()
    return Access(
        str(claims["key_user"]),
        claims.get("is_admin") in {True, "true"},
        workspace,
        by_password=False,
        key_id=str(claims["key_id"]),
        scopes=scopes,
    )


def is_in_scope(
    policy: Callable[[Access, Any], bool],
    route: KeyRoute,
    access: Access,
    message: Any,
) -> bool:
    """Whether a caller whose key has scopes may make a call: the policy must allow it with the
    grants that the scopes leave (:mod:`mlcore.auth.scopes`). A write must have required a right of
    some scope. A read must have too, or be one for everybody."""
    if route.path in CLOSED or not access.scopes or not policy(access, message):
        return False
    if route.reads:
        return route.policy in _OPEN or access.scope_use.reads or access.scope_use.writes
    return access.scope_use.writes
