"""Authorization of all routes but public ones when login is on: who the caller is, whether the call
is allowed, which grants follow from its success, and what is removed from its answer."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from mlcore.policies import hidden_references
from mlcore.policies.access import Access
from mlcore.policies.api_key_callers import KeyRoute, is_in_scope, key_caller
from mlcore.policies.caller_limits import admit_caller, admit_workspace
from mlcore.policies.hidden_references import Redaction
from mlcore.policies.iam_callers import signed_caller
from mlcore.policies.shared_rules import Follow, Policy

__all__ = (
    "admit_caller",
    "admit_workspace",
    "apply_after_success",
    "authenticated_caller",
    "is_allowed",
    "is_public",
    "load_rules",
)

PUBLIC_PREFIXES = ("/static-files/", "/favicon.ico", "/health", "/login/callback/")
PUBLIC_PATHS = frozenset(
    {
        "/health",
        "/login",
        "/login/callback",
        "/login/callback/{issuer}",
        "/logout",
        "/readyz/health",
        "/readyz/isDirty",
        "/api/3.0/mlflow/server-info",
        "/ajax-api/3.0/mlflow/server-info",
    }
)


def authenticated_caller(
    answers: Mapping[str, Any], workspace: str, *, signed: bool
) -> Access | None:
    """Returns the caller that the authorizer has identified; None if it has found none.

    Args:
        answers: ``requestContext.authorizer`` of the event. API Gateway fills ``lambda`` with what
            our authorizer returned, or ``iam`` with the IAM identity that signed; callers cannot
            set them.
        signed: whether callers sign their requests with AWS credentials.
    """
    if signed:
        return signed_caller(answers.get("iam") or {}, workspace)
    claims = answers.get("lambda") or {}
    if claims.get("key_user"):
        return key_caller(claims, workspace)
    username = claims.get("username")
    if not username:
        return None
    return Access(
        str(username),
        claims.get("is_admin") in {True, "true"},
        workspace,
        by_password=claims.get("method") == "basic",
    )


def is_public(path: str) -> bool:
    """Whether a path needs no login."""
    return path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES)


class RouteRules(NamedTuple):
    """The rules of one route: its policy, what follows a success (such as the creator's grant), and
    the redaction of its answer. ``route`` is the path, the policy's name, and whether the route
    only reads."""

    policy: Policy
    follow: Follow | None
    redaction: Redaction | None
    route: KeyRoute = KeyRoute()


def load_rules(
    policy: str, follow: str, hides: str, path: str = "", *, reads: bool = False
) -> RouteRules:
    """Loads the functions that a route declares by name: ``runs.update_run`` is that function of
    :mod:`mlcore.policies.runs`; ``hides`` names a function of
    :mod:`mlcore.policies.hidden_references`.

    Raises:
        AttributeError, ModuleNotFoundError: no such function exists; the process then does not
            start.
    """
    redaction = getattr(hidden_references, hides) if hides else None
    return RouteRules(
        _policy_function(policy),
        _policy_function(follow) if follow else None,
        redaction,
        KeyRoute(path, policy, reads),
    )


def _policy_function(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"mlcore.policies.{module}"), function)


def is_allowed(rules: RouteRules, access: Access, message: Any) -> bool:
    """Whether the caller may make this call. Administrators may make any, unless they use an API
    key with scopes.

    Args:
        message: the RPC's message, or the request of a plain route.
    """
    if access.scopes is not None:
        return is_in_scope(rules.policy, rules.route, access, message)
    return access.is_admin or rules.policy(access, message)


def apply_after_success(
    rules: RouteRules, access: Access, message: Any, body: dict[str, Any]
) -> None:
    """After a successful call, applies the route's follow-up (such as the creator's grant) and
    removes from the answer the data that the caller may not see."""
    if rules.follow is not None:
        rules.follow(access, message, body)
    if rules.redaction is not None and not access.is_admin:
        rules.redaction(access, message, body)
