"""The rights that API operations require, and whether a user's grants give them. Pure functions,
because errors here are security holes.

Among the grants on one resource the highest level applies, unless one is DENY. A resource without
any grant inherits: its requirement lists further resources, and the first one that has a grant
decides. The rules are those of ``mlflow.server.auth.requirements``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from mlcore.auth.permissions import (
    ANY,
    DENY,
    EXPERIMENT,
    MANAGE,
    NO_PERMISSIONS,
    PERMISSIONS,
    WORKSPACE,
    Grant,
    Permission,
    canonical_experiment_id,
    higher,
)

NOT_DENIED: Final = "not_denied"
"""An action that needs no grant; only DENY refuses it."""

Reader = Callable[[str], bool]
"""A predicate: whether the caller may read the resource with an id."""


def reads_everything(_resource_id: str) -> bool:
    """Returns True for every resource id: the filter for callers who may read everything."""
    return True


_CAPABILITY: Final = {
    "read": "can_read",
    "use": "can_use",
    "update": "can_update",
    "delete": "can_delete",
    "manage": "can_manage",
    "create": "can_use",
}


class InheritedFrom(NamedTuple):
    """A resource from which another resource inherits. If neither that resource nor one listed
    before this one has a grant, the grants on this one decide: they must allow ``action``."""

    resource_type: str
    resource_id: str
    action: str


class Requirement(NamedTuple):
    """An action on a resource that a user must be allowed to do, to call an API operation."""

    resource_type: str
    resource_id: str
    action: str
    """One of read, use, update, delete, manage, create and not_denied."""
    inherits: tuple[InheritedFrom, ...] = ()
    """Resources that decide, in this order, if the resource itself has no grant."""


class Grants:
    """The grants of a user in a workspace, and the permission on resources without a grant.

    Args:
        grants: the user's own grants and those of the user's roles.
        default: the minimum level on every resource, except where the level is DENY or
            NO_PERMISSIONS.
        absent: the permission on a resource without a grant.
    """

    __slots__ = ("_absent", "_default", "_grants", "administrates")

    def __init__(self, grants: Iterable[Grant], default: Permission, absent: Permission) -> None:
        self._grants = tuple(
            grant._replace(resource_pattern=canonical_experiment_id(grant.resource_pattern))
            if grant.resource_type == EXPERIMENT
            else grant
            for grant in grants
        )
        self._default = default
        self._absent = absent
        self.administrates = any(
            grant == Grant(WORKSPACE, ANY, MANAGE.name) for grant in self._grants
        )
        """Whether the user is an administrator of the workspace, to whom nothing is denied."""

    def on(self, resource_type: str, resource_id: str) -> Permission | None:
        """Returns the level that the user's grants give on a resource: DENY if one of them denies
        it, else the highest; None without a grant."""
        if resource_type == EXPERIMENT:
            resource_id = canonical_experiment_id(resource_id)
        levels = [
            grant.permission for grant in self._grants if grant.matches(resource_type, resource_id)
        ]
        if DENY.name in levels:
            return DENY
        best: str | None = None
        for name in levels:
            best = name if best is None else higher(best, name)
        return PERMISSIONS[best] if best is not None else None

    def named(self, resource_type: str) -> set[str]:
        """Returns the ids or names in the user's grants on resources of a type, ``*`` included."""
        return {
            grant.resource_pattern for grant in self._grants if grant.resource_type == resource_type
        }

    def effective(self, resource_type: str, resource_id: str) -> Permission:
        """Returns the user's permission on a resource: MANAGE for an administrator of the
        workspace, else the granted one or, without a grant, ``absent``. It is at least ``default``
        (both are arguments of the class), unless it is DENY or NO_PERMISSIONS."""
        if self.administrates:
            return MANAGE
        granted = self.on(resource_type, resource_id)
        return self._at_least_default(self._absent if granted is None else granted)

    def allow(self, requirements: Sequence[Requirement]) -> bool:
        """Whether these grants of a user meet every permission requirement of an operation."""
        return self.administrates or all(map(self.meets, requirements))

    def meets(self, requirement: Requirement) -> bool:
        """Whether the user may do the action on the resource that a requirement names."""
        if self.administrates:
            return True
        own = InheritedFrom(requirement.resource_type, requirement.resource_id, requirement.action)
        deciding = (own, *requirement.inherits)
        for resource in deciding:
            granted = self.on(resource.resource_type, resource.resource_id)
            if granted is not None:
                return _allows(self._at_least_default(granted), resource.action)
        return _allows(self._at_least_default(self._absent), deciding[-1].action)

    def _at_least_default(self, permission: Permission) -> Permission:
        if permission in (DENY, NO_PERMISSIONS):
            return permission
        return PERMISSIONS[higher(permission.name, self._default.name)]


def _allows(permission: Permission, action: str) -> bool:
    if action == NOT_DENIED:
        return permission is not DENY
    return bool(getattr(permission, _CAPABILITY[action]))
