"""Checks the endpoints of the AI gateway that a request names beyond the fields that its policy
knows."""

from __future__ import annotations

from collections.abc import Collection

from mlcore import errors
from mlcore.http import Request
from mlcore.repos.gateway import configuration


def check_usable(names: Collection[str], request: Request) -> None:
    """Checks that the endpoints exist and that the caller may use them.

    Raises:
        PermissionDenied: the caller may not use one, or it does not exist; an administrator, and
            everybody where there is no login, gets to know the difference.
        ResourceDoesNotExist: an endpoint does not exist.
    """
    if request.access is not None:
        from mlcore.policies.jobs import may_use_endpoints  # noqa: PLC0415 -- only with logins

        if not may_use_endpoints(request.access, names):
            raise errors.PermissionDenied("Permission denied")
    known = configuration.read(request.workspace)
    for name in sorted(names):
        known.existing_endpoint(name)
