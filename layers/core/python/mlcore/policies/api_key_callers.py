"""Callers who log in by an API key, and which calls a key with scopes may make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore.auth.api_key_scopes import decoded
from mlcore.policies.access import Access

_OPEN: Final = frozenset({"shared_rules.anybody", "shared_rules.public"})
"""Policies for every user. The functions behind them show only what the caller may read."""

CLOSED: Final = frozenset(
    {
        "/2.0/mlflow/experiments/update",
        "/2.0/mlflow/gateway-proxy",
        "/2.0/mlflow/registered-models/rename",
        "/2.0/preview/mlflow/registered-models/rename",
    }
)
"""Paths that are refused to every key with scopes: a renamed resource would no longer be in the
scope, and the proxy calls other servers."""


class KeyRoute(NamedTuple):
    """The properties of a route that decide whether an API key with scopes may call it."""

    path: str = ""
    policy: str = ""
    """The name of the route's policy, such as ``shared_rules.anybody``."""
    reads: bool = False
    """Whether the route only reads."""


def key_caller(claims: Mapping[str, Any], workspace: str) -> Access:
    """Returns the caller from what the authorizer says about an API key.

    The authorizer names the key's owner as ``key_user`` and not as ``username``: a function of a
    release that does not know scopes then finds no caller, instead of one with all rights.
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
    """Whether a caller whose key has scopes may make a call: the policy must allow the call with
    only the grants that the scopes leave (:mod:`mlcore.auth.api_key_scopes`). For a write, the
    policy must have required a right that a scope gives; a read may also be one that every user may
    make."""
    if route.path in CLOSED or not access.scopes or not policy(access, message):
        return False
    if route.reads:
        return route.policy in _OPEN or access.scope_use.reads or access.scope_use.writes
    return access.scope_use.writes
