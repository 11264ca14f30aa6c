"""Computes what the caller of a request may do, from the user's grants and roles, which are read
from the table when first needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mlcore import errors
from mlcore.auth.api_key_scopes import SCIM, SQL, ScopedGrants, ScopeUse
from mlcore.auth.permissions import (
    ANY,
    EXPERIMENT,
    GATEWAY_ENDPOINT,
    GATEWAY_MODEL_DEFINITION,
    GATEWAY_SECRET,
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
from mlcore.auth.requirements import (
    NOT_DENIED,
    Grants,
    InheritedFrom,
    Reader,
    Requirement,
    reads_everything,
)
from mlcore.db.table import Operation, Put
from mlcore.entities.users import Profile, Role, User
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import workspaces_enabled
from mlcore.repos.users import grants, roles, users

if TYPE_CHECKING:
    from mlcore.entities.gateway import Configuration

DEFAULT_PERMISSION: Final = "DEFAULT_PERMISSION"
GRANT_DEFAULT_WORKSPACE: Final = "GRANT_DEFAULT_WORKSPACE_ACCESS"

_LIST_CONTAINERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    RUN: (EXPERIMENT, (RUN,)),
    LOGGED_MODEL: (EXPERIMENT, (LOGGED_MODEL,)),
    REGISTERED_MODEL_VERSION: (REGISTERED_MODEL, (REGISTERED_MODEL_VERSION,)),
    PROMPT_VERSION: (PROMPT, (PROMPT_VERSION,)),
    SCORER: (SCORER, (SCORER_VERSION,)),
}
"""For resource types that are listed within a container: the container's type, and the version or
content types whose DENY hides the whole list."""

_LISTED_TO_MEMBERS: Final = frozenset(
    {
        REGISTERED_MODEL,
        PROMPT,
        SCORER,
        GATEWAY_ENDPOINT,
        GATEWAY_MODEL_DEFINITION,
        GATEWAY_SECRET,
    }
)
"""Resource types that MLflow lists to every member of a workspace. Lists of other types contain
only resources that the member may also read one by one."""


class Access:
    """The rights of one caller in one request.

    Nothing is cached between requests, so a revoked grant has no effect from the next request on.
    Reading costs one Query (per MB) for the user's partition and one BatchGetItem for the roles,
    two for members of a directory's groups.
    """

    __slots__ = (
        "_grants",
        "_profile",
        "_roles",
        "by_password",
        "gateway",
        "is_admin",
        "key_id",
        "scope_use",
        "scopes",
        "username",
        "workspace",
    )

    def __init__(
        self,
        username: str,
        is_admin: bool,
        workspace: str,
        *,
        by_password: bool = True,
        key_id: str = "",
        scopes: tuple[str, ...] | None = None,
    ) -> None:
        """Makes the rights of a caller who has logged in.

        Args:
            is_admin: whether the user is an administrator. A caller with scopes is not treated as
                one; ``scope_use`` records that the owner of the key is.
            key_id: the API key of the request; empty for another login.
            scopes: what the API key is limited to (:mod:`mlcore.auth.api_key_scopes`); None for all
                that the user may do.
        """
        self.key_id = key_id
        self.scopes = scopes
        self.scope_use = ScopeUse(owner_is_admin=is_admin)
        is_admin = is_admin and scopes is None
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
        """Returns the user that the caller is, with the user's own grants and the ids of the user's
        roles. Raises ResourceDoesNotExist if the user was deleted after the login was checked."""
        if self._profile is None:
            self._profile = users.get_profile(self.username)
        return self._profile

    def _user(self) -> User:
        """Returns the caller's user without the grants, which may be many. Raises as
        :meth:`profile`."""
        return users.get(self.username) if self._profile is None else self._profile.user

    def user_id(self) -> int:
        """Returns the number of the caller's user; one GetItem unless the grants were read. Raises
        as :meth:`profile`."""
        return self._user().user_id

    def roles(self) -> list[Role]:
        """Returns the caller's roles: assigned ones, and those of the caller's SCIM groups."""
        if self._roles is None:
            self._roles = roles.of_profile(self.profile())
        return self._roles

    def grants(self, workspace: str | None = None) -> Grants:
        """Returns the caller's grants in a workspace, by default in that of the request."""
        name = self.workspace if workspace is None else workspace
        workspace_grants = self._grants.get(name)
        if workspace_grants is None:
            workspace_grants = self._grants[name] = self._limited(name)
        return workspace_grants

    def _limited(self, workspace: str) -> Grants:
        """Reads the caller's grants in a workspace and limits them to the scopes of the caller's
        key."""
        if self.scopes is None:
            return grants_of(self.profile(), self.roles(), workspace)
        owner = (
            Grants([Grant(WORKSPACE, ANY, MANAGE.name)], MANAGE, MANAGE)
            if self.scope_use.owner_is_admin
            else grants_of(self.profile(), self.roles(), workspace)
        )
        is_own = workspace == self.workspace
        return ScopedGrants(owner, self.scopes if is_own else (), self.scope_use)

    def of_sql(self) -> Access | None:
        """Returns the caller whose rights decide about SQL queries: this caller or, for an API key
        whose scopes include ``sql``, the key's owner. None for a key whose scopes lack ``sql``."""
        if self.scopes is None:
            return self
        if SQL not in self.scopes:
            return None
        self.scope_use.writes = True
        return Access(self.username, self.scope_use.owner_is_admin, self.workspace)

    def provisions(self) -> bool:
        """Whether the caller's API key may provision users and groups: it has the scope ``scim``,
        and its owner is an administrator."""
        if self.scopes is None or SCIM not in self.scopes or not self.scope_use.owner_is_admin:
            return False
        self.scope_use.writes = True
        return True

    def allows(self, *requirements: Requirement) -> bool:
        """Whether the caller's grants meet every given requirement; an administrator meets all."""
        return self.is_admin or self.grants().allow(requirements)

    def _predicate(self, resource_type: str, *requirements: Requirement) -> Reader:
        grants = self.grants()
        if not grants.allow(requirements):
            return lambda _resource_id: False
        parents = (
            (InheritedFrom(WORKSPACE, ANY, "read"),) if resource_type in _LISTED_TO_MEMBERS else ()
        )
        return lambda resource_id: grants.meets(
            Requirement(resource_type, resource_id, "read", parents)
        )

    def list_filter(self, resource_type: str) -> Reader:
        """Returns a function that says, by id or name, whether a list may show a resource to the
        caller. For contents of an experiment or versions of a model the function takes the id of
        the experiment or the name of the model."""
        if self.is_admin:
            return reads_everything
        container, denied_types = _LIST_CONTAINERS.get(resource_type, (resource_type, ()))
        requirements = [Requirement(denied_type, ANY, NOT_DENIED) for denied_type in denied_types]
        return self._predicate(container, *requirements)

    def reads_any(self, resource_type: str) -> bool:
        """Whether a list of resources of this type could have an entry for the caller: because
        resources without a grant are readable, or because a grant names a readable one."""
        may_read = self.list_filter(resource_type)
        return may_read(ANY) or any(map(may_read, self.grants().named(resource_type)))

    def administrates(self, workspace: str) -> bool:
        """Whether the caller is an administrator of a workspace."""
        return self.is_admin or self.grants(workspace).administrates

    def sees_workspace(self, workspace: str) -> bool:
        """Whether the caller may know of a workspace: by a role in it, by a grant on all of it that
        allows reading, or because its resources without a grant are readable."""
        if self.is_admin or not workspaces_enabled():
            return True
        if any(role.workspace == workspace for role in self.roles()):
            return True
        granted = [
            PERMISSIONS[held.grant.permission]
            for held in self.profile().grants
            if held.workspace == workspace and held.grant[:2] == (WORKSPACE, ANY)
        ]
        return (
            any(level.can_read for level in granted) or permission_without_grant(workspace).can_read
        )

    def granting(self, resource_type: str, resource_id: str) -> list[Put]:
        """Returns the put operations that give the caller MANAGE on a new resource, to write in the
        transaction that creates it.

        Raises ResourceDoesNotExist if the user was deleted after the login was checked,
        InvalidParameterValue for a resource named ``*``, as the grant would be one on all resources
        of the type.
        """
        if resource_id == ANY:
            raise reserved_name()
        user = self._user()
        users.own_role_id(user, self.workspace)
        return grants.granting(user, self.workspace, Grant(resource_type, resource_id, MANAGE.name))

    def grant_manage(self, resource_type: str, resource_id: str) -> None:
        """Gives the caller MANAGE on a resource that the caller has created. Repeating the call has
        no further effect."""
        user = self._user()
        users.own_role_id(user, self.workspace)
        grants.put(user, self.workspace, Grant(resource_type, resource_id, MANAGE.name))

    def moving_grants(self, name: str, new_name: str | None) -> list[Operation]:
        """Returns the operations that move the grants on a registered model or prompt to its new
        name, or delete them (``new_name`` None); to write in the transaction that renames or
        deletes it.

        Without them, old grants would apply to a later model of the same name. A model named ``*``,
        which was made without a login, has no grants.
        """
        if name == ANY:
            return []
        if new_name is None:
            return grants.leaving_operations(
                self.workspace, grants.MODEL_TYPES, name, self.username
            )
        return grants.rename_operations_of_model(self.workspace, name, new_name)

    def leaving_grants(self, resource_type: str, resource_id: str) -> list[Operation]:
        """Returns the operations that delete the grants on a resource, to write in the transaction
        that deletes it. Otherwise they would apply to a later resource of the same name.

        The operations cover at most ``GRANTS_AT_ONCE`` grants, the caller's own among them; more
        are deleted by this call. The function that the route declares to follow it (in
        :mod:`mlcore.policies.remaining_grants`) deletes those that were granted meanwhile.
        """
        return grants.leaving_operations(
            self.workspace, [resource_type], resource_id, self.username
        )

    def may_create(self) -> bool:
        """Whether the caller may create resources (such as experiments, models, skills and secrets)
        in the request's workspace. Policies check separately whether DENY forbids the type."""
        if self.is_admin or not workspaces_enabled():
            return True
        granted = self.grants().on(WORKSPACE, ANY)
        if granted is not None:
            return granted.can_use
        return permission_without_grant(self.workspace).can_use


def reserved_name() -> errors.InvalidParameterValue:
    """Returns MLflow's error for a registered model named ``*``, which grants use as a wildcard."""
    return errors.InvalidParameterValue(
        f"'{ANY}' is reserved for wildcard permission grants and cannot be used as a registered "
        "model or prompt name."
    )


def grants_of(profile: Profile, assigned: Iterable[Role], workspace: str) -> Grants:
    """Returns the grants of a user in a workspace: the user's own and those of the assigned
    roles."""
    held = [grant for grant_workspace, grant in profile.grants if grant_workspace == workspace]
    held += [
        permission.grant
        for role in assigned
        if role.workspace == workspace
        for permission in role.permissions
    ]
    return Grants(held, default_permission(), permission_without_grant(workspace))


def administrated_workspaces(profile: Profile, assigned: Iterable[Role]) -> set[str]:
    """Returns the workspaces that a user administers, by own grants or by assigned roles."""
    return {
        role.workspace
        for role in assigned
        if any(held.grant == Grant(WORKSPACE, ANY, "MANAGE") for held in role.permissions)
    } | {
        workspace for workspace, grant in profile.grants if grant == Grant(WORKSPACE, ANY, "MANAGE")
    }


def default_permission() -> Permission:
    """Returns the configured permission on resources without a grant (READ if none is configured).
    It is also the least that a grant gives, except DENY and NO_PERMISSIONS."""
    return PERMISSIONS[os.environ.get(DEFAULT_PERMISSION) or "READ"]


def permission_without_grant(workspace: str) -> Permission:
    """Returns what users may do with a resource without a grant on it: the default permission. If
    workspaces are enabled, that holds only in the default workspace, and only if
    ``GRANT_DEFAULT_WORKSPACE_ACCESS`` is true; otherwise users may do nothing."""
    if not workspaces_enabled():
        return default_permission()
    default_is_open = os.environ.get(GRANT_DEFAULT_WORKSPACE, "").lower() in {"1", "true"}
    return (
        default_permission()
        if default_is_open and workspace == DEFAULT_WORKSPACE
        else NO_PERMISSIONS
    )
