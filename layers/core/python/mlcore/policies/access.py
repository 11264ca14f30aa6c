"""What the caller of a request may do: the user's grants and roles, read at the first question."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mlcore.auth.permissions import (
    ANY,
    EXPERIMENT,
    LOGGED_MODEL,
    MANAGE,
    NO_PERMISSIONS,
    PERMISSIONS,
    PROMPT,
    PROMPT_VERSION,
    REGISTERED_MODEL,
    REGISTERED_MODEL_VERSION,
    RUN,
    SCORER,
    SCORER_VERSION,
    WORKSPACE,
    Grant,
    Permission,
)
from mlcore.auth.requirements import NOT_DENIED, Grants, Reader, Requirement, Rung, everything
from mlcore.db.table import Operation, Put
from mlcore.entities.users import Profile, Role, User
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import workspaces_enabled
from mlcore.repos.users import grants, roles, users

if TYPE_CHECKING:
    from mlcore.entities.gateway import Configuration

DEFAULT_PERMISSION: Final = "DEFAULT_PERMISSION"
GRANT_DEFAULT_WORKSPACE: Final = "GRANT_DEFAULT_WORKSPACE_ACCESS"

_LISTED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    RUN: (EXPERIMENT, (RUN,)),
    LOGGED_MODEL: (EXPERIMENT, (LOGGED_MODEL,)),
    REGISTERED_MODEL_VERSION: (REGISTERED_MODEL, (REGISTERED_MODEL_VERSION,)),
    PROMPT_VERSION: (PROMPT, (PROMPT_VERSION,)),
    SCORER: (SCORER, (SCORER_VERSION,)),
}
"""Of what is listed in a container: the container's type, and the types whose DENY hides all."""


class Access:
    """One caller in one request.

    Nothing is remembered between requests: what is revoked is gone at once. The user's partition is
    one Query, the roles one BatchGetItem.
    """

    __slots__ = (
        "_grants",
        "_profile",
        "_roles",
        "by_password",
        "gateway",
        "is_admin",
        "username",
        "workspace",
    )

    def __init__(
        self, username: str, is_admin: bool, workspace: str, *, by_password: bool = True
    ) -> None:
        self.username = username
        self.by_password = by_password
        self.is_admin = is_admin
        self.workspace = workspace
        self.gateway: Configuration | None = None
        """The gateway's configuration, once a policy has read it for this request."""
        self._profile: Profile | None = None
        self._roles: list[Role] | None = None
        self._grants: dict[str, Grants] = {}

    def profile(self) -> Profile:
        """The caller. Raises ResourceDoesNotExist when the user was deleted meanwhile."""
        if self._profile is None:
            self._profile = users.get_profile(self.username)
        return self._profile

    def _user(self) -> User:
        """The caller without grants, of which those who make much have many. Raises as
        :meth:`profile`."""
        return users.get(self.username) if self._profile is None else self._profile.user

    def roles(self) -> list[Role]:
        """The roles that the caller was assigned."""
        if self._roles is None:
            self._roles = roles.find_many(self.profile().role_ids)
        return self._roles

    def grants(self, workspace: str | None = None) -> Grants:
        """The caller's grants in a workspace, by default the request's."""
        name = self.workspace if workspace is None else workspace
        found = self._grants.get(name)
        if found is None:
            found = self._grants[name] = grants_of(self.profile(), self.roles(), name)
        return found

    def allows(self, *requirements: Requirement) -> bool:
        """Whether the caller meets every requirement; an administrator meets all."""
        return self.is_admin or self.grants().allow(requirements)

    def _reader(self, resource_type: str, *also: Requirement) -> Reader:
        grants = self.grants()
        if not grants.allow(also):
            return lambda _resource_id: False
        member = (Rung(WORKSPACE, ANY, "read"),)
        return lambda resource_id: grants.meets(
            Requirement(resource_type, resource_id, "read", member)
        )

    def lists(self, resource_type: str) -> Reader:
        """Which resources of a type the caller sees in a list. Of what is in an experiment or a
        model, it takes the ids or names of those."""
        if self.is_admin:
            return everything
        container, vetoes = _LISTED.get(resource_type, (resource_type, ()))
        also = [Requirement(each, ANY, NOT_DENIED) for each in vetoes]
        return self._reader(container, *also)

    def administrates(self, workspace: str) -> bool:
        """Whether the caller administrates a workspace."""
        return self.is_admin or self.grants(workspace).administrates

    def sees_workspace(self, workspace: str) -> bool:
        """Whether the caller may know of a workspace: by a role there, or a grant on all of it."""
        if self.is_admin or not workspaces_enabled():
            return True
        if any(role.workspace == workspace for role in self.roles()):
            return True
        granted = [
            PERMISSIONS[held.grant.permission]
            for held in self.profile().grants
            if held.workspace == workspace and held.grant[:2] == (WORKSPACE, ANY)
        ]
        return any(level.can_read for level in granted) or absent(workspace).can_read

    def granting(self, resource_type: str, resource_id: str) -> list[Put]:
        """What is to be written with a new resource, so that its creator manages it from the first
        moment on. Raises ResourceDoesNotExist when the user was deleted meanwhile."""
        user = self._user()
        users.own_role_id(user, self.workspace)
        return grants.granting(user, self.workspace, Grant(resource_type, resource_id, MANAGE.name))

    def give(self, resource_type: str, resource_id: str) -> None:
        """Lets the caller manage what the caller made; where a repeated request makes it anew."""
        user = self._user()
        users.own_role_id(user, self.workspace)
        grants.put(user, self.workspace, Grant(resource_type, resource_id, MANAGE.name))

    def moving_grants(self, name: str, new_name: str | None) -> list[Operation]:
        """What is to be written with a model's new name, or its deletion: a name may come back for
        something else, and nobody has a grant on that."""
        return grants.moving_of_model(self.workspace, name, new_name)

    def leaving_grants(self, resource_type: str, resource_id: str) -> list[Operation]:
        """What is to be written with the deletion of a resource whose name may come back."""
        found = grants.moving(self.workspace, resource_type, resource_id, None)
        return [operation for one in found[: grants.GRANTS_AT_ONCE] for operation in one]

    def may_create(self) -> bool:
        """Whether the caller may create experiments and models in the request's workspace."""
        if self.is_admin or not workspaces_enabled():
            return True
        granted = self.grants().on(WORKSPACE, ANY)
        if granted is not None:
            return granted.can_use
        return absent(self.workspace).can_use


def grants_of(profile: Profile, assigned: Iterable[Role], workspace: str) -> Grants:
    """The grants of a user in a workspace: own ones and those of roles."""
    held = [grant for where, grant in profile.grants if where == workspace]
    held += [
        permission.grant
        for role in assigned
        if role.workspace == workspace
        for permission in role.permissions
    ]
    return Grants(held, default_permission(), absent(workspace))


def administrated(profile: Profile, assigned: Iterable[Role]) -> set[str]:
    """The workspaces that a user administrates."""
    return {
        role.workspace
        for role in assigned
        if any(held.grant == Grant(WORKSPACE, ANY, "MANAGE") for held in role.permissions)
    } | {where for where, grant in profile.grants if grant == Grant(WORKSPACE, ANY, "MANAGE")}


def default_permission() -> Permission:
    """The level of those who have no grant, below which no grant falls."""
    return PERMISSIONS[os.environ.get(DEFAULT_PERMISSION) or "READ"]


def absent(workspace: str) -> Permission:
    """What holds where there is no grant: nothing in workspaces, unless the default one is open."""
    if not workspaces_enabled():
        return default_permission()
    opened = os.environ.get(GRANT_DEFAULT_WORKSPACE, "").lower() in {"1", "true"}
    return default_permission() if opened and workspace == DEFAULT_WORKSPACE else NO_PERMISSIONS
