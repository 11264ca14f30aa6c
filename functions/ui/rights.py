"""What of GraphQL's answers a caller may see. As with MLflow's server the rest is null or left out,
without an error that would tell that it exists."""

from __future__ import annotations

from collections.abc import Iterable

from mlcore.auth.permissions import EXPERIMENT, RUN
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


def readable(request: Request, experiment_ids: Iterable[str]) -> list[str]:
    """The experiments whose runs the caller may list."""
    may_read = request.may_read(RUN)
    return [each for each in experiment_ids if may_read is None or may_read(each)]
