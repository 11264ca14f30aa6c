"""What of GraphQL's answers a caller may see. As with MLflow's server the rest is null or left out,
without an error that would tell that it exists."""

from __future__ import annotations

from collections.abc import Iterable

from mlcore.auth.permissions import EXPERIMENT
from mlcore.auth.requirements import Requirement
from mlcore.http import Request


def may_read_experiment(request: Request, experiment_id: str) -> bool:
    if request.access is None:
        return True
    allowed: bool = request.access.allows(Requirement(EXPERIMENT, experiment_id, "read"))
    return allowed


def may_read_runs(request: Request, run_ids: Iterable[str]) -> bool:
    if request.access is None:
        return True
    from mlcore.policies.requests import on_runs  # noqa: PLC0415 -- only where callers log in

    return on_runs(request.access, run_ids, "read")
