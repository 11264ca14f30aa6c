"""Decides which data a caller may see in GraphQL's answers. As on MLflow's server, hidden data is
null or omitted, without an error, which would reveal that it exists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore.auth.permissions import ANY, EXPERIMENT, RUN
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.http import Request


def may_read_experiment(request: Request, experiment_id: str) -> bool:
    if request.access is None:
        return True
    allowed: bool = request.access.allows(Requirement(EXPERIMENT, experiment_id, "read"))
    return allowed


def may_read_runs(request: Request, run_ids: Iterable[str]) -> bool:
    if request.access is None:
        return True
    from mlcore.policies.shared_rules import on_runs  # noqa: PLC0415 -- needed only with logins

    return on_runs(request.access, run_ids, "read")


def hide_in_runs(request: Request, runs: Iterable[dict[str, Any]]) -> None:
    if request.access is not None and not request.access.is_admin:
        from mlcore.policies import hidden_references  # noqa: PLC0415 -- needed only with logins

        hidden_references.hide_in_runs(request.access, runs)


def hide_in_versions(request: Request, versions: Iterable[dict[str, Any]]) -> None:
    if request.access is not None and not request.access.is_admin:
        from mlcore.policies import hidden_references  # noqa: PLC0415 -- needed only with logins

        hidden_references.hide_in_versions(request.access, versions)


def may_find_by_run(request: Request, filter_string: str) -> bool:
    """Whether the caller may search model versions by this filter. A filter on ``run_id`` reveals
    which run made a version, so callers to whom runs are denied may not use it."""
    return "run_id" not in filter_string.lower() or (
        request.access is None or request.access.allows(Requirement(RUN, ANY, NOT_DENIED))
    )
