"""Stands before every route where authentication is on: who calls, whether they may, and what
follows when they did."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from mlcore.policies import redactions
from mlcore.policies.access import Access
from mlcore.policies.redactions import Redaction
from mlcore.policies.requests import Follow, Policy
from mlcore.policies.signers import signer

PUBLIC_PREFIXES = ("/static-files/", "/favicon.ico", "/health")
PUBLIC_PATHS = frozenset(
    {
        "/health",
        "/readyz/health",
        "/readyz/isDirty",
        "/api/3.0/mlflow/server-info",
        "/ajax-api/3.0/mlflow/server-info",
    }
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


class Rules(NamedTuple):
    """What a route demands of its caller, what follows its success, and what its answer hides."""

    policy: Policy
    follow: Follow | None
    redaction: Redaction | None


def rules(policy: str, follow: str, hides: str) -> Rules:
    """The rules that a route names: ``runs.update_run`` is that function of
    :mod:`mlcore.policies.runs`, what a route hides a function of :mod:`mlcore.policies.redactions`.

    Raises:
        AttributeError, ModuleNotFoundError: there is no such function; the process does not start.
    """
    redaction = getattr(redactions, hides) if hides else None
    return Rules(_named(policy), _named(follow) if follow else None, redaction)


def _named(name: str) -> Any:
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"mlcore.policies.{module}"), function)


def allows(rules: Rules, access: Access, message: Any) -> bool:
    """Whether a call passes.

    Args:
        message: of an RPC; of a plain route the request.
    """
    return access.is_admin or rules.policy(access, message)


def afterwards(rules: Rules, access: Access, message: Any, body: dict[str, Any]) -> None:
    """What a successful call means for grants: creators manage what they made; and takes out of its
    answer what the caller may not know."""
    if rules.follow is not None:
        rules.follow(access, message, body)
    if rules.redaction is not None and not access.is_admin:
        rules.redaction(access, message, body)
