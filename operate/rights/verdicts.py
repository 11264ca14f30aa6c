"""Computes what a user may do with a resource, and by which grants.

It calls the product's own policies, with a caller object that records the requirements that they
check. The reasons are derived from this record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mlcore.auth.permissions import ANY, MANAGE, WORKSPACE, Grant
from mlcore.auth.requirements import NOT_DENIED, Grants, InheritedFrom, Requirement
from mlcore.entities.users import Profile, Role, User
from mlcore.policies.access import (
    Access,
    default_permission,
    grants_of,
    permission_without_grant,
)
from mlcore.policies.route_authorization import RouteRules, is_allowed
from operate.rights.resources import Resource


class GrantOrigin(NamedTuple):
    """A grant of a user, and its source: the user's own grant or a role."""

    grant: Grant
    workspace: str
    source: str

    def text(self) -> str:
        resource_type, pattern, level = self.grant
        return f"{level} on {resource_type} {pattern} ({self.source})"


class Verdict(NamedTuple):
    may: bool
    reason: str


class _Observed(Access):
    """A caller object that records the requirements that policies check, in order."""

    def __init__(self, user: User, workspace: str) -> None:
        super().__init__(user.username, user.is_admin, workspace)
        self.required: list[Requirement] = []

    def allows(self, *requirements: Requirement) -> bool:
        self.required += requirements
        return super().allows(*requirements)


def origins_of(profile: Profile, assigned: Iterable[Role]) -> list[GrantOrigin]:
    """Returns all grants of a user in all workspaces: first the user's own, then those of the
    user's roles."""
    own = [GrantOrigin(grant, workspace, "own grant") for workspace, grant in profile.grants]
    return own + [
        GrantOrigin(permission.grant, role.workspace, f"role {role.name}")
        for role in assigned
        for permission in role.permissions
    ]


def verdicts(
    profile: Profile, assigned: Sequence[Role], resource: Resource, workspace: str
) -> dict[str, Verdict]:
    """Returns for each action on a resource whether a user may do it, and why.

    Args:
        assigned: the user's roles.
    """
    explanation = _Explanation(profile, assigned, workspace)
    by_action = {}
    for action, policy in resource.policies.items():
        access = _Observed(profile.user, workspace)
        may = is_allowed(RouteRules(policy, None, None), access, resource.message)
        by_action[action] = Verdict(may, explanation.reason(access, may=may))
    return by_action


class _Explanation:
    def __init__(self, profile: Profile, assigned: Sequence[Role], workspace: str) -> None:
        self._grants = grants_of(profile, assigned, workspace)
        self._absent = permission_without_grant(workspace)
        self._origins = [
            origin for origin in origins_of(profile, assigned) if origin.workspace == workspace
        ]

    def reason(self, access: _Observed, *, may: bool) -> str:
        """Returns the reason for a decision: the first requirement that the user does not meet; if
        all are met, the first one that is met by a permission level."""
        if access.is_admin:
            return "is an administrator"
        if self._grants.administrates:
            everything = Grant(WORKSPACE, ANY, MANAGE.name)
            return ", ".join(
                requirement.text()
                for requirement in self._origins
                if requirement.grant == everything
            )
        unmet = [
            requirement for requirement in access.required if not self._grants.meets(requirement)
        ]
        if not (unmet or may):
            return "the resource is in another workspace"
        levels = [
            requirement for requirement in access.required if requirement.action != NOT_DENIED
        ]
        return self._because((unmet or levels)[0])

    def _because(self, requirement: Requirement) -> str:
        own = InheritedFrom(requirement.resource_type, requirement.resource_id, requirement.action)
        for parent in (own, *requirement.inherits):
            level = self._grants.on(parent.resource_type, parent.resource_id)
            if level is None:
                continue
            deciding = [
                origin.text()
                for origin in self._origins
                if origin.grant.permission == level.name and _is_on(origin.grant, parent)
            ]
            counted = self._grants.effective(parent.resource_type, parent.resource_id)
            raised = "" if counted == level else f", counts as {counted.name} like no grant"
            return ", ".join(deciding) + raised
        wanted = f"{requirement.resource_type} {requirement.resource_id}"
        return f"no grant on {wanted}: {self._absent.name}"


def _is_on(grant: Grant, parent: InheritedFrom) -> bool:
    alone = Grants([grant], default_permission(), default_permission())
    return alone.on(parent.resource_type, parent.resource_id) is not None
