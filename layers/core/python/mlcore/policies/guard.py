"""Stands before every route where authentication is on: who calls, whether they may, and what
follows when they did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlcore.policies.access import Access
from mlcore.policies.redactions import REDACTIONS
from mlcore.policies.routes import AFTERWARDS, POLICIES
from mlcore.policies.signers import signer

PUBLIC_PREFIXES = ("/static-files/", "/favicon.ico", "/health")
PUBLIC_PATHS = frozenset(
    {"/health", "/api/3.0/mlflow/server-info", "/ajax-api/3.0/mlflow/server-info"}
)


def caller(answers: Mapping[str, Any], workspace: str, *, signed: bool) -> Access | None:
    """The caller as the authorizer found it; None when it found none.

    Args:
        answers: ``requestContext.authorizer`` of the event. API Gateway fills ``lambda`` with what
            our authorizer returned, or ``iam`` with who signed; nobody else can.
        signed: whether callers sign.
    """
    if signed:
        return signer(answers.get("iam") or {}, workspace)
    found = answers.get("lambda") or {}
    username = found.get("username")
    if not username:
        return None
    return Access(
        str(username),
        found.get("is_admin") in {True, "true"},
        workspace,
        by_password=found.get("method") == "basic",
    )


def is_public(path: str) -> bool:
    """Whether a path needs no login."""
    return path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES)


def allows(route: tuple[str, str], access: Access, message: Any) -> bool:
    """Whether a call passes. A route that no policy names is for administrators alone.

    Args:
        route: method and path as the domain declares them.
        message: of an RPC; of a plain route the request.
    """
    if access.is_admin:
        return True
    policy = POLICIES.get(route)
    return policy is not None and policy(access, message)


def afterwards(route: tuple[str, str], access: Access, message: Any, body: dict[str, Any]) -> None:
    """What a successful call means for grants: creators manage what they made; and takes out of its
    answer what the caller may not know."""
    follow = AFTERWARDS.get(route)
    if follow is not None:
        follow(access, message, body)
    redact = REDACTIONS.get(route)
    if redact is not None and not access.is_admin:
        redact(access, message, body)
