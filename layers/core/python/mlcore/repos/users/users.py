"""Users with their grants and roles: one partition per user, and a list of names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from mlcore import errors
from mlcore.auth.passwords import SERVICE_ACCOUNT_HASH
from mlcore.auth.permissions import Grant
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Put, TransactionFailed, table
from mlcore.entities.scim import USER, parse_scim_id, scim_id_of
from mlcore.entities.users import HeldGrant, Profile, User
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import Item
from mlcore.models.scim import ScimMembership, ScimName
from mlcore.models.users import User as UserItem
from mlcore.models.users import UserGrant, UserName, UserRole
from mlcore.repos.counters import next_number

_GRANTS = {keys.USER_GRANT.name, keys.EXPERIMENT_PERMISSION.name, keys.MODEL_PERMISSION.name}
"""Types of items that are read as :class:`mlcore.models.users.UserGrant`."""


class UserExists(Exception):
    """Raised if a user is to be created with a name that another user has."""


class PasswordChanged(Exception):
    """Raised if a user's password is no longer the one that was to be replaced."""


class Deactivated(errors.PermissionDenied):
    """Raised if the company's directory (a SCIM client) does not let this user log in."""


def missing(username: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"User with username={username} not found")


def find(username: str) -> User | None:
    """Returns a user; None if there is none of this name. One consistent GetItem."""
    item = table.get(keys.user(username)) if username else None
    return None if item is None else user_in(item)


def get(username: str) -> User:
    """Returns the user with this name. Raises ResourceDoesNotExist if there is none."""
    user = find(username)
    if user is None:
        raise missing(username)
    return user


def find_profile(username: str) -> Profile | None:
    """Returns a user with grants and roles; None if there is none of this name. One consistent
    Query per MB of the user's partition."""
    if not username:
        return None
    items = list(table.query_all(keys.user(username).pk))
    return _profile(items)


def get_profile(username: str) -> Profile:
    """Returns a user with grants and roles; one consistent Query per MB of the user's partition.
    Raises ResourceDoesNotExist if there is no such user."""
    profile = find_profile(username)
    if profile is None:
        raise missing(username)
    return profile


def find_all() -> list[Profile]:
    """Returns all users, each with their own grants and roles, ordered by user name."""
    names = [
        UserName.of(item).username
        for item in table.query_all(keys.USER_NAME.pk.text, attributes=[UserName.username])
    ]
    profiles = table.parallel([partial(find_profile, name) for name in names])
    return [profile for profile in profiles if profile is not None]


def create(username: str, password_hash: str, is_admin: bool) -> User:
    """Creates a user and their entry in the list of user names, in one transaction. Raises
    UserExists."""
    user = User(next_number("user"), username, password_hash, is_admin, {})
    key, listed = keys.user(username), keys.user_name(username)
    item = UserItem(
        PK=key.pk,
        SK=key.sk,
        username=username,
        user_id=user.user_id,
        password_hash=password_hash,
        is_admin=is_admin,
        role_ids={},
        version=1,
        updated_at=now_ms(),
    )
    name = UserName(
        PK=listed.pk,
        SK=listed.sk,
        username=username,
        is_service_account=True if password_hash == SERVICE_ACCOUNT_HASH else None,
        updated_at=now_ms(),
    )
    absent = ConditionExpression()
    absent.require_absent(UserItem.PK)
    try:
        table.transact([Put(item.serialize(), absent), Put(name.serialize())], new_ulid())
    except TransactionFailed as failed:
        raise UserExists(username) from failed
    return user


def ensure(username: str) -> User:
    """Returns the user with a name that an external login has verified; creates the user, without
    password and grants, if there is none. One GetItem for an existing user.

    Raises:
        PermissionDenied: the name is that of a service account, for which an issuer may not sign
            in; or a company's directory (a SCIM client) has deactivated or just deleted the user,
            or provisions the name in another spelling.
    """
    user = find(username)
    if user is not None:
        if user.password_hash == SERVICE_ACCOUNT_HASH:
            raise errors.PermissionDenied("A service account logs in by its API keys only.")
        if not user.is_active:
            raise Deactivated("The user is deactivated.")
        return user
    _check_not_provisioned(username)
    try:
        return create(username, "", is_admin=False)
    except UserExists:
        return get(username)


def _check_not_provisioned(username: str) -> None:
    """Checks that a directory neither has just deleted the user with a name nor provisions the name
    in another spelling; else a login would create a person's second user. Up to two GetItem. Raises
    PermissionDenied."""
    item = table.get(keys.scim_name(USER, username.lower()))
    if item is None:
        return
    lock = ScimName.of(item)
    if lock.is_deleted:
        if (lock.ttl or 0) > now_ms() // 1_000:
            raise Deactivated("The directory has deleted the user.")
        return
    parsed = parse_scim_id(lock.scim_id)
    other = None if parsed is None else find(parsed[1])
    if parsed is not None and other is not None and other.user_id == parsed[0]:
        raise Deactivated("The directory provisions the user's name in another spelling.")


def update(
    username: str,
    *,
    password_hash: str | None = None,
    is_admin: bool | None = None,
    replaces: str | None = None,
) -> None:
    """Sets a user's password hash and whether the user is an administrator; what is None stays.

    Args:
        replaces: the password hash that the user must have now; None for any.

    Raises:
        ResourceDoesNotExist: there is no such user.
        PasswordChanged: the user has another password hash than ``replaces``.
    """
    change = Update()
    if password_hash is not None:
        change.set(UserItem.password_hash, password_hash)
    if is_admin is not None:
        change.set(UserItem.is_admin, is_admin)
    if replaces is not None:
        change.require_equal(UserItem.password_hash, replaces)
    change.add(UserItem.version, 1)
    change.require_exists(UserItem.PK)
    try:
        table.update(keys.user(username), change)
    except ConditionFailed as failed:
        if failed.item is None:
            raise missing(username) from failed
        # Hashes are salted: another request has not written this one. Its answer was lost.
        if UserItem.of(failed.item).password_hash != password_hash:
            raise PasswordChanged from failed


def delete(profile: Profile) -> None:
    """Deletes a user with the entry in the list of names and the binding to a sign-in account, in
    one transaction, then the user's grants, roles and group memberships. Does nothing if another
    user has the name by now.

    Leftovers of an interrupted deletion carry the deleted user's number, which no other user gets.
    """
    username = profile.user.username
    mine = ConditionExpression()
    mine.require_absent_or_equal(UserItem.user_id, profile.user.user_id)
    listed_name, sign_in = keys.user_name(username), keys.sign_in(username)
    try:
        table.transact(
            [Delete(keys.user(username), mine), Delete(listed_name), Delete(sign_in)], new_ulid()
        )
    except TransactionFailed:
        return  # the user was deleted before, and the name given to another
    own = [
        keys.user_grant(username, held.workspace, held.grant.resource_type, held.grant[1])
        for held in profile.grants
    ]
    listed = [
        keys.grantee(held.workspace, held.grant.resource_type, held.grant[1], username)
        for held in profile.grants
    ]
    roles = [
        key
        for role_id in profile.role_ids
        for key in (
            keys.user_role(username, str(role_id)),
            keys.role_user(str(role_id), username),
        )
    ]
    scim_id = scim_id_of(profile.user.user_id, username)
    groups = [
        key
        for group_id in profile.group_ids
        for key in (
            keys.scim_membership(username, group_id),
            keys.scim_member(group_id, scim_id),
        )
    ]
    table.batch_write(deletes=[*own, *listed, *roles, *groups])


def own_role_id(user: User, workspace: str) -> int:
    """Returns the id of the role under which MLflow's API shows a user's own grants in a workspace.
    The id is assigned at the first call."""
    known = user.role_ids.get(workspace)
    if known is not None:
        return known
    made = next_number("role")
    change = Update()
    change.set((UserItem.role_ids, workspace), str(made))
    change.require_absent((UserItem.role_ids, workspace))
    change.require_exists(UserItem.PK)
    try:
        table.update(keys.user(user.username), change)
    except ConditionFailed as failed:
        if failed.item is None:
            raise missing(user.username) from failed
        return user_in(failed.item).role_ids[workspace]
    return made


def forget_own_role(user: User, workspace: str, role_id: int) -> None:
    """Removes the role under which MLflow's API shows a user's own grants in a workspace. Does
    nothing if it is removed already."""
    change = Update()
    change.remove((UserItem.role_ids, workspace))
    change.require_equal((UserItem.role_ids, workspace), str(role_id))
    with contextlib.suppress(ConditionFailed):
        table.update(keys.user(user.username), change)


def _profile(items: Sequence[Raw]) -> Profile | None:
    user: User | None = None
    for item in items:
        if Item.of(item).type == keys.USER.name:
            user = user_in(item)
    if user is None:
        return None
    return Profile(
        user,
        tuple(_grants(user, items)),
        tuple(_assigned(user, items)),
        tuple(_groups(user, items)),
    )


def _grants(user: User, items: Iterable[Raw]) -> Iterator[HeldGrant]:
    """Yields the user's own grants in the order in which they were granted."""
    grants = [UserGrant.of(item) for item in items if Item.of(item).type in _GRANTS]
    for held in sorted(grants, key=lambda grant: grant.updated_at or 0):
        if held.user_id == user.user_id:
            grant = Grant(held.resource_type, held.resource_pattern, held.permission)
            yield HeldGrant(held.workspace, grant)


def _assigned(user: User, items: Iterable[Raw]) -> Iterator[int]:
    for item in items:
        if Item.of(item).type == keys.USER_ROLE.name:
            held = UserRole.of(item)
            if held.user_id == user.user_id:
                yield held.role_id


def _groups(user: User, items: Iterable[Raw]) -> Iterator[str]:
    for item in items:
        if Item.of(item).type == keys.SCIM_MEMBERSHIP.name:
            held = ScimMembership.of(item)
            if held.user_id == user.user_id:
                yield held.group_id


def user_in(item: Raw) -> User:
    """Returns the user in a ``U#META`` item."""
    user = UserItem.of(item)
    return User(
        user.user_id,
        user.username,
        user.password_hash,
        user.is_admin,
        {name: int(text) for name, text in (user.role_ids or {}).items()},
        is_active=not user.is_inactive,
    )
