"""What an operation requires, and how grants answer it; pure, since a mistake here opens a door.

Within one resource the highest grant counts, unless one of them is DENY. Between a resource and
those it inherits from, the first that has any grant decides. (``mlflow.server.auth.requirements``)
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
    experiment_named,
    higher,
)

NOT_DENIED: Final = "not_denied"
"""An action that needs no grant and that only DENY refuses."""

Reader = Callable[[str], bool]
"""Whether a caller may read the resource of an id."""


def everything(_resource_id: str) -> bool:
    """The reader of who may read all."""
    return True


_CAPABILITY: Final = {
    "read": "can_read",
    "use": "can_use",
    "update": "can_update",
    "delete": "can_delete",
    "manage": "can_manage",
    "create": "can_use",
}


class Rung(NamedTuple):
    """A resource that decides when those before it have no grant, and the action it must allow."""

    resource_type: str
    resource_id: str
    action: str


class Requirement(NamedTuple):
    """An action on a resource."""

    resource_type: str
    resource_id: str
    action: str
    """read, use, update, delete, manage, create or not_denied."""
    inherits: tuple[Rung, ...] = ()
    """What decides, in this order, when the resource itself has no grant."""


class Grants:
    """The grants of a user in a workspace, and what holds where there is none.

    Args:
        grants: of the user and of the user's roles.
        default: the level that every grant but DENY is raised to.
        absent: what a resource without a grant allows.
    """

    __slots__ = ("_absent", "_default", "_grants", "administrates")

    def __init__(self, grants: Iterable[Grant], default: Permission, absent: Permission) -> None:
        self._grants = tuple(
            grant._replace(resource_pattern=experiment_named(grant.resource_pattern))
            if grant.resource_type == EXPERIMENT
            else grant
            for grant in grants
        )
        self._default = default
        self._absent = absent
        self.administrates = any(
            grant == Grant(WORKSPACE, ANY, MANAGE.name) for grant in self._grants
        )
        """Whether the user administrates the workspace; nothing is denied to such a user."""

    def on(self, resource_type: str, resource_id: str) -> Permission | None:
        """The level granted on a resource, None when there is no grant."""
        if resource_type == EXPERIMENT:
            resource_id = experiment_named(resource_id)
        names = [
            grant.permission for grant in self._grants if grant.matches(resource_type, resource_id)
        ]
        if DENY.name in names:
            return DENY
        best: str | None = None
        for name in names:
            best = name if best is None else higher(best, name)
        return PERMISSIONS[best] if best is not None else None

    def effective(self, resource_type: str, resource_id: str) -> Permission:
        """The level on a resource with administration, default and absence taken into account."""
        if self.administrates:
            return MANAGE
        granted = self.on(resource_type, resource_id)
        return self._floored(self._absent if granted is None else granted)

    def allow(self, requirements: Sequence[Requirement]) -> bool:
        """Whether every requirement is met."""
        return self.administrates or all(map(self.meets, requirements))

    def meets(self, requirement: Requirement) -> bool:
        """Whether one requirement is met."""
        if self.administrates:
            return True
        own = Rung(requirement.resource_type, requirement.resource_id, requirement.action)
        rungs = (own, *requirement.inherits)
        for rung in rungs:
            granted = self.on(rung.resource_type, rung.resource_id)
            if granted is not None:
                return _allows(self._floored(granted), rung.action)
        return _allows(self._floored(self._absent), rungs[-1].action)

    def _floored(self, permission: Permission) -> Permission:
        if permission in (DENY, NO_PERMISSIONS):
            return permission
        return PERMISSIONS[higher(permission.name, self._default.name)]


def _allows(permission: Permission, action: str) -> bool:
    if action == NOT_DENIED:
        return permission is not DENY
    return bool(getattr(permission, _CAPABILITY[action]))
