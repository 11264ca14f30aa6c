"""Checks that the caller may use the language models (gateway endpoints, saved keys) that a request
needs, where its authorization policy does not know them: those of stored scorers, for example."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mlcore import errors
from mlcore.entities.evaluation.job_model import JobModel
from mlcore.http import Request
from mlcore.repos.gateway import configuration


def check_usable(models: Collection[JobModel], request: Request) -> None:
    """Checks that the gateway endpoints and saved API keys of a job's models exist, and that the
    caller may use them.

    Raises:
        PermissionDenied: the caller may not use an endpoint or key, or it does not exist.
        ResourceDoesNotExist: an endpoint or a key does not exist, and the caller is an
            administrator or no login is required.
        InvalidParameterValue: a key belongs to another provider.
    """
    if request.access is not None:
        from mlcore.policies.jobs import may_use_models  # noqa: PLC0415 -- only with logins

        if not may_use_models(request.access, models):
            raise errors.PermissionDenied("Permission denied")
    known = configuration.read(request.workspace)
    for model in sorted(models, key=lambda each: each.uri):
        model.check_usable(known)


def check_endpoints_of(serialized_scorers: Iterable[str], request: Request) -> None:
    """Checks that the caller may use the gateway endpoints that registered scorers call. The
    request only names these scorers. Raises PermissionDenied."""
    if request.access is None:
        return
    from mlcore.policies.jobs import uses_endpoints  # noqa: PLC0415 -- only with logins

    if not uses_endpoints(request.access, serialized_scorers):
        raise errors.PermissionDenied("Permission denied")


def check_judges_automatically(
    experiment_id: str, name: str, serialized_scorer: str, request: Request
) -> None:
    """Checks that the caller may let a scorer judge new traces automatically, which it does in the
    caller's name. Raises PermissionDenied.

    Args:
        name: the name under which the scorer is registered.
        serialized_scorer: the scorer, with the name of its endpoint.
    """
    if request.access is None:
        return
    from mlcore.policies.jobs import may_judge  # noqa: PLC0415 -- only with logins

    if not may_judge(request.access, experiment_id, serialized_scorer, name, writes=True):
        raise errors.PermissionDenied("Permission denied")
