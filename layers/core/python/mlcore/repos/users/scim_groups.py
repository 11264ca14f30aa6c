"""Groups that a directory provisions, their members, and the roles that they give. A group's roles
are in its item, which each request of a member reads: a deleted group gives nothing any more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import AdditionalOperationFailed
from mlcore.db.table import Check, Delete, ItemUpdate, Operation, Put, TransactionFailed, table
from mlcore.entities.scim import GROUP, ScimGroup, parse_scim_id
from mlcore.ids import new_ulid, now_ms
from mlcore.models.scim import ScimGroup as ScimGroupItem
from mlcore.models.scim import ScimMember, ScimMembership, ScimName, ScimValue
from mlcore.models.users import User as UserItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.users import scim_lookup_items

EXTERNAL_ID: Final = "externalId"
MEMBERS_AT_ONCE: Final = 30
"""Members that one transaction adds, with three operations each, or removes with two."""

Edit = Callable[[ScimGroup], ScimGroup]
"""A function from a group as stored to the group as it is to be written. Only ``display_name``,
``external_id`` and ``role_ids`` may differ."""


class GroupNameTaken(Exception):
    """Another SCIM group has the name, perhaps in another spelling."""


class NoSuchMember(Exception):
    """A SCIM id that is to be added to a group does not belong to a user."""


def find(group_id: str) -> ScimGroup | None:
    """Returns the SCIM group with this id; None if there is none. One GetItem."""
    item = table.get(keys.scim_group(group_id)) if group_id else None
    return None if item is None else _group(item)


def find_named(name: str) -> ScimGroup | None:
    """Returns the SCIM group with a name, ignoring case; None if there is none. One GetItem for the
    lock item of the name and, if it exists, one for the group."""
    lock = table.get(keys.scim_name(GROUP, name.lower()))
    return None if lock is None else find(ScimName.of(lock).scim_id)


def find_by_external_id(external_id: str) -> list[ScimGroup]:
    """Returns the SCIM groups to which the directory gave this external id. One Query per MB and
    one BatchGetItem per hundred groups."""
    pk = keys.scim_value(GROUP, EXTERNAL_ID, external_id, "").pk
    groups = _find_many([ScimValue.of(item).scim_id for item in table.query_all(pk)])
    return [group for group in groups if group.external_id == external_id]


def find_all() -> list[ScimGroup]:
    """Returns all SCIM groups, oldest first; one Query per MB."""
    return [_group(item) for item in table.query_all(keys.SCIM_GROUP.pk.text)]


def find_of_member(scim_id: str) -> list[ScimGroup]:
    """Returns a user's SCIM groups. One Query per MB and one BatchGetItem per hundred groups."""
    parsed = parse_scim_id(scim_id)
    if parsed is None:
        return []
    number, username = parsed
    prefix = keys.scim_membership_prefix()
    items = table.query_all(keys.scim_membership(username, "").pk, prefix=prefix)
    held = map(ScimMembership.of, items)
    return _find_many([membership.group_id for membership in held if membership.user_id == number])


def role_ids_of(group_ids: Sequence[str]) -> list[int]:
    """Returns the ids of the roles that SCIM groups give; missing groups give none. One
    BatchGetItem per hundred groups, none without groups."""
    return [role_id for group in _find_many(group_ids) for role_id in group.role_ids]


def members(group_id: str) -> list[str]:
    """Returns the SCIM ids of a group's members; one Query per MB."""
    pk = keys.scim_member(group_id, "").pk
    return [ScimMember.of(item).scim_id for item in table.query_all(pk)]


def members_of_each(group_ids: Sequence[str]) -> list[list[str]]:
    """Returns the SCIM ids of the members of each group; for each group one Query
    per MB, in parallel."""
    return table.parallel([partial(members, group_id) for group_id in group_ids])


def have_member(group_ids: Sequence[str], scim_id: str) -> set[str]:
    """Returns the ids of those SCIM groups, of the given ones, of which a user is a member; one
    BatchGetItem per hundred."""
    return _existing({group_id: keys.scim_member(group_id, scim_id) for group_id in group_ids})


def create(
    display_name: str,
    external_id: str | None,
    role_ids: tuple[int, ...],
    checks: Sequence[Check] = (),
) -> ScimGroup:
    """Creates a SCIM group without members. Raises GroupNameTaken, or AdditionalOperationFailed if
    a condition of ``checks`` does not hold."""
    lock = _free_lock(display_name, "")
    now = now_ms()
    made = ScimGroup(new_ulid(), display_name, external_id, role_ids, 1, now, now)
    operations: list[Operation] = [Put(_item(made)), _reserving(made, lock), *_listing(made)]
    try:
        _write(operations, checks)
    except TransactionFailed as failed:
        raise GroupNameTaken(display_name) from failed
    return made


def update(group_id: str, edit: Edit, checks: Sequence[Check] = ()) -> ScimGroup | None:
    """Changes a SCIM group, and returns it as stored; None if there is no such group. Nothing is
    written if nothing changes. Raises GroupNameTaken, or AdditionalOperationFailed if a condition
    of ``checks`` does not hold."""

    def attempt() -> ScimGroup | None:
        before = find(group_id)
        if before is None:
            return None
        after = edit(before)
        if after == before:
            return before
        after = after._replace(version=before.version + 1, updated_at=now_ms())
        try:
            _write(_changing(before, after), checks)
        except TransactionFailed as failed:
            raise WriteConflict from failed
        return after

    return retry_on_conflict("group", attempt)


def set_roles(group_id: str, role_ids: tuple[int, ...], checks: Sequence[Check] = ()) -> None:
    """Sets the roles that a SCIM group gives to its members. Does nothing if it is missing. Raises
    AdditionalOperationFailed if a condition of ``checks`` does not hold."""
    update(group_id, lambda group: group._replace(role_ids=role_ids), checks)


def _write(operations: Sequence[Operation], checks: Sequence[Check]) -> None:
    try:
        table.transact([*operations, *checks], new_ulid())
    except TransactionFailed as failed:
        position = max(failed.items) - len(operations)
        if position >= 0:
            raise AdditionalOperationFailed(position) from failed
        raise


def add_members(group_id: str, scim_ids: Iterable[str]) -> bool:
    """Adds users to a SCIM group. Returns False if a user is to be added and the group does not
    exist. Users who are members already are ignored. One BatchGetItem per hundred users, a
    transaction per :data:`MEMBERS_AT_ONCE` new members. Repeating an interrupted call completes it.

    Raises:
        NoSuchMember: an id is not that of a user.
    """
    wanted = list(dict.fromkeys(scim_ids))
    present = _existing({scim_id: keys.scim_member(group_id, scim_id) for scim_id in wanted})
    new = [scim_id for scim_id in wanted if scim_id not in present]
    for at in range(0, len(new), MEMBERS_AT_ONCE):
        operations: list[Operation] = [_touching(group_id)]
        chunk = new[at : at + MEMBERS_AT_ONCE]
        for scim_id in chunk:
            operations += _adding(group_id, scim_id)
        try:
            table.transact(operations, new_ulid())
        except TransactionFailed as failed:
            if 0 in failed.items:
                return False
            raise NoSuchMember(chunk[(min(failed.items) - 1) // 3]) from failed
    return True


def remove_members(group_id: str, scim_ids: Iterable[str]) -> bool:
    """Removes users from a SCIM group. Returns False if a member is to be removed and the group
    does not exist. Users who are not members are ignored. Two BatchGetItem per hundred users, a
    transaction per :data:`MEMBERS_AT_ONCE` members. Repeating an interrupted call completes it."""
    removed = sorted(
        _existing({scim_id: keys.scim_member(group_id, scim_id) for scim_id in scim_ids})
    )
    own = _own_memberships(group_id, removed)
    for at in range(0, len(removed), MEMBERS_AT_ONCE):
        operations: list[Operation] = [_touching(group_id)]
        for scim_id in removed[at : at + MEMBERS_AT_ONCE]:
            operations.append(Delete(keys.scim_member(group_id, scim_id)))
            if scim_id in own:
                operations.append(Delete(own[scim_id]))
        try:
            table.transact(operations, new_ulid())
        except TransactionFailed:
            return False  # the only condition is that the group exists
    return True


def delete(group: ScimGroup) -> None:
    """Deletes a SCIM group, then the items of its memberships, which give no roles without the
    group's item. The users stay. :func:`delete_memberships` completes an interrupted call."""
    name = keys.scim_name(GROUP, group.display_name.lower())
    mine = ConditionExpression()
    mine.require_absent_or_equal(ScimName.scim_id, group.group_id)
    operations: list[Operation] = [
        Delete(keys.scim_group(group.group_id)),
        Delete(name, mine),
        *(Delete(key) for key in _value_keys(group)),
    ]
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed:
        table.delete(keys.scim_group(group.group_id))
    delete_memberships(group.group_id)


def delete_memberships(group_id: str) -> None:
    """Deletes the items of the memberships of a SCIM group that was deleted. One Query per MB; may
    be killed anywhere and repeated."""
    scim_ids = members(group_id)
    users = [parsed[1] for scim_id in scim_ids if (parsed := parse_scim_id(scim_id)) is not None]
    table.batch_write(deletes=[keys.scim_membership(name, group_id) for name in users])
    # Last, because these find the others.
    table.batch_write(deletes=[keys.scim_member(group_id, scim_id) for scim_id in scim_ids])


def _find_many(group_ids: Sequence[str]) -> list[ScimGroup]:
    if not group_ids:
        return []
    items = table.batch_get([keys.scim_group(group_id) for group_id in group_ids])
    return [_group(item) for item in items if item is not None]


def _existing(item_keys: Mapping[str, keys.Key]) -> set[str]:
    """Returns the ids whose keys have items; one BatchGetItem per hundred."""
    items = table.batch_get(list(item_keys.values()))
    return {name for name, item in zip(item_keys, items, strict=True) if item is not None}


def _touching(group_id: str) -> ItemUpdate:
    """Returns the update that counts a write of members, on condition that the group exists."""
    change = Update()
    change.add(ScimGroupItem.version, 1)
    change.set(ScimGroupItem.updated_at, now_ms())
    change.require_exists(ScimGroupItem.PK)
    return ItemUpdate(keys.scim_group(group_id), change)


def _adding(group_id: str, scim_id: str) -> list[Operation]:
    parsed = parse_scim_id(scim_id)
    if parsed is None:
        raise NoSuchMember(scim_id)
    number, username = parsed
    of_group, of_user = (
        keys.scim_member(group_id, scim_id),
        keys.scim_membership(username, group_id),
    )
    alive = ConditionExpression()
    alive.require_equal(UserItem.user_id, number)
    now = now_ms()
    member = ScimMember(PK=of_group.pk, SK=of_group.sk, scim_id=scim_id, updated_at=now)
    membership = ScimMembership(
        PK=of_user.pk, SK=of_user.sk, group_id=group_id, user_id=number, updated_at=now
    )
    return [
        Put(member.serialize()),
        Put(membership.serialize()),
        Check(keys.user(username), alive),
    ]


def _own_memberships(group_id: str, scim_ids: Sequence[str]) -> dict[str, keys.Key]:
    """Returns the keys of memberships by the SCIM ids of their users. The membership of a later
    user of the same name is left out."""
    users = {scim_id: parsed for scim_id in scim_ids if (parsed := parse_scim_id(scim_id))}
    item_keys = [keys.scim_membership(username, group_id) for _, username in users.values()]
    items = table.batch_get(item_keys)
    return {
        scim_id: key
        for (scim_id, (number, _)), key, item in zip(users.items(), item_keys, items, strict=True)
        if item is not None and ScimMembership.of(item).user_id == number
    }


def _changing(before: ScimGroup, after: ScimGroup) -> list[Operation]:
    same = ConditionExpression()
    same.require_equal(ScimGroupItem.version, before.version)
    operations: list[Operation] = [Put(_item(after), same)]
    if after.display_name.lower() != before.display_name.lower():
        lock = _free_lock(after.display_name, after.group_id)
        mine = ConditionExpression()
        mine.require_absent_or_equal(ScimName.scim_id, before.group_id)
        operations += [
            _reserving(after, lock),
            Delete(keys.scim_name(GROUP, before.display_name.lower()), mine),
        ]
    if after.external_id != before.external_id:
        operations += [*_listing(after), *(Delete(key) for key in _value_keys(before))]
    return operations


def _free_lock(name: str, group_id: str) -> Raw | None:
    """Returns what is stored of a name that the group may take. Raises GroupNameTaken if another
    group has it."""
    lock = table.get(keys.scim_name(GROUP, name.lower()))
    if lock is not None:
        holder = ScimName.of(lock).scim_id
        if holder != group_id and find(holder) is not None:
            raise GroupNameTaken(name)
    return lock


def _reserving(group: ScimGroup, lock: Raw | None) -> Put:
    return scim_lookup_items.reserving(GROUP, group.display_name, group.group_id, lock)


def _value_keys(group: ScimGroup) -> list[keys.Key]:
    if group.external_id is None:
        return []
    return [keys.scim_value(GROUP, EXTERNAL_ID, group.external_id, group.group_id)]


def _listing(group: ScimGroup) -> list[Put]:
    return [Put(scim_lookup_items.value_item(key, group.group_id)) for key in _value_keys(group)]


def _item(group: ScimGroup) -> Raw:
    key = keys.scim_group(group.group_id)
    return ScimGroupItem(
        PK=key.pk,
        SK=key.sk,
        group_id=group.group_id,
        display_name=group.display_name,
        external_id=group.external_id,
        role_ids=json.dumps(group.role_ids),
        version=group.version,
        created_at=group.created_at,
        updated_at=group.updated_at,
    ).serialize()


def _group(raw: Raw) -> ScimGroup:
    item = ScimGroupItem.of(raw)
    return ScimGroup(
        item.group_id,
        item.display_name,
        item.external_id,
        tuple(json.loads(item.role_ids)),
        item.version,
        item.created_at,
        item.updated_at or item.created_at,
    )
