"""Transfers users with their grants and roles, but without passwords, which no server returns.
Grants that exist only in the table are kept."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from mlcore.auth.permissions import Grant
from mlcore.entities.users import Profile, Role
from mlcore.repos.users import grants, roles, users
from operate.transfer.mlflow_client import Json, Server, SourceFailed
from operate.transfer.source_reader import API
from operate.transfer.transfer_item import Content, TransferItem

_API_3: Final = "api/3.0/mlflow"
_OWN_ROLE: Final = re.compile(r"__user_\d+__")
"""The name of the role that holds a user's own grants on a server."""

Target = Callable[[str, str], str]
"""A function that takes a resource type and the server's id of a resource, and returns this
product's id."""

Resource = tuple[str, str, str]
"""Workspace, resource type, pattern."""


class Accounts(NamedTuple):
    """The items that transfer the source server's users and roles. The roles are transferred first,
    because users refer to them."""

    roles: list[TransferItem]
    users: list[TransferItem]


def read(server: Server, target_of: Target) -> Accounts:
    """Reads the users and roles of an MLflow server that are to be imported. Returns none if the
    server is older than 3.17 or has no login, or if the account there is not an administrator's."""
    try:
        users = server.get(f"{API}/users/list")["users"]
        listed = server.get(f"{_API_3}/roles/list")["roles"]
    except SourceFailed as failed:
        if failed.unknown or failed.forbidden:
            return Accounts([], [])
        raise
    return Accounts(
        [_role(fields, target_of) for fields in listed if not _OWN_ROLE.fullmatch(fields["name"])],
        [_user(fields, target_of) for fields in users],
    )


def _user(fields: Json, target_of: Target) -> TransferItem:
    name = fields["username"]
    own: dict[Resource, str] = {}
    assigned = []
    for role in fields.get("roles", ()):
        if _OWN_ROLE.fullmatch(role["name"]):
            own.update(_granted(role, target_of))
        else:
            assigned.append((role["workspace"], role["name"]))
    is_admin = bool(fields["is_admin"])
    want = {
        "is_admin": is_admin,
        "grants": {_text(resource): level for resource, level in own.items()},
        "roles": sorted(map(list, assigned)),
    }

    def have() -> Content | None:
        profile = users.find_profile(name)
        if profile is None:
            return None
        held = {resource: level for resource, level in _held(profile).items() if resource in own}
        named = {(role.workspace, role.name) for role in roles.find_many(profile.role_ids)}
        return {
            # An administrator of the table stays one.
            "is_admin": profile.user.is_admin and is_admin,
            "grants": {_text(resource): level for resource, level in held.items()},
            "roles": sorted(
                list(assigned_role) for assigned_role in named if assigned_role in assigned
            ),
        }

    def write(_: Content, existing: Content | None) -> None:
        if existing is None:
            # No password matches an empty hash, so the user cannot log in until an administrator
            # sets one.
            users.create(name, "", is_admin=is_admin)
        elif is_admin and not existing["is_admin"]:
            users.update(name, is_admin=True)
        user = users.get(name)
        for (workspace, kind, pattern), level in own.items():
            users.own_role_id(user, workspace)
            grants.put(user, workspace, Grant(kind, pattern, level))
        ids = {(role.workspace, role.name): role.role_id for role in roles.find_all()}
        for assigned_role in assigned:
            if assigned_role in ids:
                with contextlib.suppress(roles.AlreadyAssigned):
                    roles.assign(user, ids[assigned_role])

    return TransferItem("user", name, lambda: want, have, write)


def _role(fields: Json, target_of: Target) -> TransferItem:
    workspace, name = fields["workspace"], fields["name"]
    description: str | None = fields.get("description")
    own = _granted(fields, target_of)
    want = {
        "description": description,
        "grants": {_text(resource): level for resource, level in own.items()},
    }

    def find() -> Role | None:
        named = (
            stored_role
            for stored_role in roles.find_all()
            if (stored_role.workspace, stored_role.name) == (workspace, name)
        )
        return next(named, None)

    def have() -> Content | None:
        role = find()
        if role is None:
            return None
        held = {
            (workspace, *permission.grant[:2]): permission.grant.permission
            for permission in role.permissions
        }
        return {
            "description": role.description,
            "grants": {
                _text(resource): level for resource, level in held.items() if resource in own
            },
        }

    def write(_: Content, __: Content | None) -> None:
        role = find() or roles.create(name, workspace, description)
        if role.description != description:
            roles.update(role.role_id, None, description)
        known = {permission.grant[:2]: permission for permission in role.permissions}
        for (_workspace, *resource), level in own.items():
            held = known.get((resource[0], resource[1]))
            if held is None:
                roles.add_permission(role.role_id, Grant(resource[0], resource[1], level))
            elif held.grant.permission != level:
                roles.replace_permission(held.permission_id, level)

    return TransferItem("role", f"{workspace}/{name}", lambda: want, have, write)


def _granted(role: Json, target_of: Target) -> dict[Resource, str]:
    permissions: Iterable[Any] = role.get("permissions", ())
    return {
        (
            role["workspace"],
            permission["resource_type"],
            target_of(permission["resource_type"], permission["resource_pattern"]),
        ): permission["permission"]
        for permission in permissions
    }


def _held(profile: Profile) -> dict[Resource, str]:
    return {
        (held.workspace, held.grant.resource_type, held.grant.resource_pattern): (
            held.grant.permission
        )
        for held in profile.grants
    }


def _text(resource: Resource) -> str:
    return " ".join(resource)
