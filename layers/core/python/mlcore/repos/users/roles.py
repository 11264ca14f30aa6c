"""Roles with their permissions and the users who have them: few, so all in one partition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from mlcore import errors
from mlcore.auth.permissions import Grant
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, ItemUpdate, Put, TransactionFailed, table
from mlcore.entities.users import Assignment, Profile, Role, RolePermission, User
from mlcore.ids import new_ulid, now_ms
from mlcore.models.users import Role as RoleItem
from mlcore.models.users import RoleName, RoleUser, UserRole
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.counters import next_number
from mlcore.repos.users import scim_groups
from mlcore.repos.workspaces import workspaces

PERMISSIONS_PER_ROLE = 100_000
"""A permission's number is its role's number times this, plus its own number, so it identifies its
role."""

_FIRST_BESIDE: Final = 2
"""The position of the caller's puts in a transaction that assigns a role or takes it."""


class RoleNameTaken(Exception):
    """Another role of the workspace has the name."""


class PermissionExists(Exception):
    """Raised if a role already has a permission on the same resource type and resource pattern."""


class AlreadyAssigned(Exception):
    """The user already has the role."""


class NotAssigned(Exception):
    """Raised if a role is to be taken from a user who does not have it."""


def missing(role_id: int) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Role with id={role_id} not found")


def missing_permission(permission_id: int) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Role permission with id={permission_id} not found")


def get(role_id: int) -> Role:
    """Returns a role. Raises ResourceDoesNotExist."""
    item = table.get(keys.role(str(role_id)))
    if item is None:
        raise missing(role_id)
    return _role(item)


def find_many(role_ids: Iterable[int]) -> list[Role]:
    """Returns those of the roles that exist; one BatchGetItem per hundred."""
    items = table.batch_get([keys.role(str(role_id)) for role_id in role_ids])
    return [_role(item) for item in items if item is not None]


def of_profile(profile: Profile) -> list[Role]:
    """Returns the roles of a user: those that are assigned to the user, and those that the user's
    SCIM groups give. One BatchGetItem per hundred roles and per hundred groups."""
    role_ids = [*profile.role_ids, *scim_groups.role_ids_of(profile.group_ids)]
    return find_many(dict.fromkeys(role_ids))


def find_named(workspace: str, name: str) -> Role | None:
    """Returns the role of a workspace with a name; None if there is none. One GetItem and one
    BatchGetItem."""
    named = table.get(keys.role_name(workspace, name))
    if named is None:
        return None
    return next(iter(find_many([RoleName.of(named).role_id])), None)


def find_all() -> list[Role]:
    """Returns the roles of all workspaces, oldest first."""
    items = table.query_all(keys.ROLE.pk.text, prefix=keys.role_prefix())
    return sorted(map(_role, items))


def create(
    name: str, workspace: str, description: str | None, *, in_existing: bool = False
) -> Role:
    """Creates a role and the lock of its name, in one transaction.

    Args:
        in_existing: the workspace must exist, and not be in deletion: the deletion might not find
            the role, which would then give rights in a later workspace of the same name.

    Raises:
        RoleNameTaken: another role of the workspace has the name.
        ResourceDoesNotExist: ``in_existing``, and there is no such workspace.
    """
    role = Role(next_number("role"), name, workspace, description, ())
    key = keys.role(str(role.role_id))
    item = RoleItem(
        PK=key.pk,
        SK=key.sk,
        role_id=role.role_id,
        name=name,
        workspace=workspace,
        description=description,
        permissions="[]",
        last_permission=0,
        version=1,
        updated_at=now_ms(),
    )
    absent = ConditionExpression()
    absent.require_absent(RoleName.PK)
    guard = workspaces.creation_guard(workspace) if in_existing else []
    try:
        table.transact([Put(_name(role), absent), Put(item.serialize()), *guard], new_ulid())
    except TransactionFailed as failed:
        if 0 not in failed.items:
            raise workspaces.missing(workspace) from failed
        raise RoleNameTaken(name) from failed
    return role


def update(role_id: int, name: str | None, description: str | None) -> Role:
    """Changes those fields of a role that are not None. Raises ResourceDoesNotExist,
    RoleNameTaken."""

    def attempt() -> Role:
        role = get(role_id)
        changed = role._replace(
            name=role.name if name is None else name,
            description=role.description if description is None else description,
        )
        change = Update()
        change.set(RoleItem.name, changed.name)
        if changed.description is not None:
            change.set(RoleItem.description, changed.description)
        change.require_equal(RoleItem.name, role.name)
        operations: list[Put | Delete | ItemUpdate] = [ItemUpdate(keys.role(str(role_id)), change)]
        if changed.name != role.name:
            absent = ConditionExpression()
            absent.require_absent(RoleName.PK)
            operations += [
                Put(_name(changed), absent),
                Delete(keys.role_name(role.workspace, role.name)),
            ]
        try:
            table.transact(operations, new_ulid())
        except TransactionFailed as failed:
            if 1 in failed.items:
                raise RoleNameTaken(changed.name) from failed
            raise WriteConflict from failed
        return changed

    return retry_on_conflict("role", attempt)


def delete(role_id: int) -> None:
    """Deletes a role with the lock of its name, then its assignments: an assignment to a missing
    role grants nothing. Raises ResourceDoesNotExist."""

    def attempt() -> None:
        role = get(role_id)
        same = ConditionExpression()
        same.require_equal(RoleItem.name, role.name)
        lock = keys.role_name(role.workspace, role.name)
        try:
            table.transact([Delete(keys.role(str(role_id)), same), Delete(lock)], new_ulid())
        except TransactionFailed as failed:  # it was renamed: its lock is another one
            raise WriteConflict from failed

    retry_on_conflict("role", attempt)
    usernames = [item.username for item in _assigned(role_id)]
    table.batch_write(
        deletes=[
            key
            for username in usernames
            for key in (
                keys.user_role(username, str(role_id)),
                keys.role_user(str(role_id), username),
            )
        ]
    )


def add_permission(role_id: int, grant: Grant) -> RolePermission:
    """Adds a permission to a role. Raises ResourceDoesNotExist, PermissionExists."""
    added: list[RolePermission] = []

    def add(role: Role, last: int) -> tuple[Sequence[RolePermission], int]:
        if any(held.grant[:2] == grant[:2] for held in role.permissions):
            raise PermissionExists
        added[:] = [RolePermission(role_id * PERMISSIONS_PER_ROLE + last + 1, grant)]
        return [*role.permissions, *added], last + 1

    _change_permissions(role_id, add)
    return added[0]


def find_permission(permission_id: int) -> tuple[Role, RolePermission]:
    """Returns the role that holds the permission with this id, and the permission. Raises
    ResourceDoesNotExist if no role holds it."""
    item = table.get(keys.role(str(permission_id // PERMISSIONS_PER_ROLE)))
    if item is not None:
        role = _role(item)
        for held in role.permissions:
            if held.permission_id == permission_id:
                return role, held
    raise missing_permission(permission_id)


def replace_permission(permission_id: int, permission: str | None) -> RolePermission:
    """Changes the level of a role's permission, or removes the permission if ``permission`` is
    None. Raises ResourceDoesNotExist."""
    role, before = find_permission(permission_id)
    after = before if permission is None else _leveled(before, permission)

    def replace(current: Role, last: int) -> tuple[Sequence[RolePermission], int]:
        if not any(held.permission_id == permission_id for held in current.permissions):
            raise missing_permission(permission_id)
        kept = [
            after if held.permission_id == permission_id else held
            for held in current.permissions
            if permission is not None or held.permission_id != permission_id
        ]
        return kept, last

    _change_permissions(role.role_id, replace)
    return after


def assign(user: User, role_id: int, beside: Sequence[Put] = ()) -> Assignment:
    """Assigns a role to a user: writes it in the list of the role and in the list of the user, in
    one transaction.

    Args:
        beside: further puts of the transaction.

    Raises:
        ResourceDoesNotExist: there is no such role.
        AlreadyAssigned: the user has it.
        WriteConflict: a condition of ``beside`` does not hold.
    """
    get(role_id)
    made = Assignment(next_number("assignment"), user.user_id, role_id)
    of_role, of_user = (
        keys.role_user(str(role_id), user.username),
        keys.user_role(user.username, str(role_id)),
    )
    attributes: dict[str, Any] = {"user_id": user.user_id, "assignment_id": made.assignment_id}
    first = RoleUser(PK=of_role.pk, SK=of_role.sk, username=user.username, **attributes)
    second = UserRole(PK=of_user.pk, SK=of_user.sk, role_id=role_id, **attributes)
    absent = ConditionExpression()
    absent.require_absent_or_other(RoleUser.user_id, user.user_id)
    try:
        table.transact(
            [Put(first.serialize(), absent), Put(second.serialize()), *beside],
            new_ulid(),
        )
    except TransactionFailed as failed:
        if max(failed.items) >= _FIRST_BESIDE:
            raise WriteConflict from failed
        raise AlreadyAssigned from failed
    return made


def unassign(user: User, role_id: int, beside: Sequence[Put] = ()) -> None:
    """Takes a role from a user. Raises NotAssigned if the user does not have it, WriteConflict if a
    condition of ``beside`` does not hold."""
    mine = ConditionExpression()
    mine.require_equal(UserRole.user_id, user.user_id)
    try:
        table.transact(
            [
                Delete(keys.user_role(user.username, str(role_id)), mine),
                Delete(keys.role_user(str(role_id), user.username)),
                *beside,
            ],
            new_ulid(),
        )
    except TransactionFailed as failed:
        if max(failed.items) >= _FIRST_BESIDE:
            raise WriteConflict from failed
        raise NotAssigned from failed


def assignments(role_id: int) -> list[Assignment]:
    """Returns the assignments of a role to users. Raises ResourceDoesNotExist."""
    get(role_id)
    return sorted(
        Assignment(item.assignment_id, item.user_id, role_id) for item in _assigned(role_id)
    )


def _assigned(role_id: int) -> list[RoleUser]:
    prefix = keys.role_user_prefix(str(role_id))
    return [RoleUser.of(item) for item in table.query_all(keys.ROLE.pk.text, prefix=prefix)]


Edit = Callable[[Role, int], tuple[Sequence[RolePermission], int]]


def _change_permissions(role_id: int, edit: Edit) -> None:
    def attempt() -> None:
        raw = table.get(keys.role(str(role_id)))
        if raw is None:
            raise missing(role_id)
        item = RoleItem.of(raw)
        held, last = edit(_role(raw), item.last_permission)
        change = Update()
        rows = [[permission.permission_id, *permission.grant] for permission in held]
        change.set(RoleItem.permissions, json.dumps(rows))
        change.set(RoleItem.last_permission, last)
        change.set(RoleItem.updated_at, now_ms())
        change.require_equal(RoleItem.permissions, item.permissions)
        change.require_equal(RoleItem.last_permission, item.last_permission)
        try:
            table.update(keys.role(str(role_id)), change)
        except ConditionFailed as failed:
            raise WriteConflict from failed

    retry_on_conflict("role", attempt)


def _leveled(entry: RolePermission, permission: str) -> RolePermission:
    return entry._replace(grant=entry.grant._replace(permission=permission))


def _name(role: Role) -> Raw:
    key = keys.role_name(role.workspace, role.name)
    held = RoleName(PK=key.pk, SK=key.sk, role_id=role.role_id, updated_at=now_ms())
    return held.serialize()


def _role(raw: Raw) -> Role:
    item = RoleItem.of(raw)
    return Role(
        item.role_id,
        item.name,
        item.workspace,
        item.description,
        tuple(
            RolePermission(number, Grant(*grant)) for number, *grant in json.loads(item.permissions)
        ),
    )
