"""Users as a SCIM directory (an identity provider) provisions them: the directory's attributes of
each user, and items that find users by the directory's ids. Every person who is a user can be
provisioned; service accounts are invisible here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from mlcore.auth.passwords import SERVICE_ACCOUNT_HASH
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, ItemUpdate, Operation, Put, TransactionFailed, table
from mlcore.entities.scim import USER, ScimUser, parse_scim_id
from mlcore.entities.users import User
from mlcore.ids import new_ulid, now_ms
from mlcore.models.scim import ScimName, ScimValue
from mlcore.models.scim import ScimUser as ScimUserItem
from mlcore.models.users import User as UserItem
from mlcore.models.users import UserName
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.counters import next_number
from mlcore.repos.users import scim_lookup_items, users

EXTERNAL_ID: Final = "externalId"
E_MAIL: Final = "emails.value"

DELETED_SECONDS: Final = 86_400
"""For how long a login cannot create a user whom the directory deleted: longer than bearer tokens
are valid."""

Edit = Callable[[ScimUser], ScimUser]
"""A function from a user as stored to the user as it is to be written. Only ``user.is_active``,
``external_id`` and ``attributes`` may differ."""


class UserNameTaken(Exception):
    """Raised if another user has the user name, perhaps in another letter case."""


def find(scim_id: str) -> ScimUser | None:
    """Returns the user with a SCIM id; None if there is none. At most one BatchGetItem."""
    return next(iter(find_many([scim_id])), None)


def find_many(scim_ids: Iterable[str]) -> list[ScimUser]:
    """Returns those of the users with the given SCIM ids that exist, in the order of the ids; one
    round trip."""
    wanted = [parsed for parsed in map(parse_scim_id, scim_ids) if parsed is not None]
    names = [username for _, username in wanted]
    numbers = [number for number, _ in wanted]
    return [
        user
        for number, user in zip(numbers, _read(names), strict=True)
        if user is not None and user.user.user_id == number
    ]


def find_named(name: str) -> ScimUser | None:
    """Returns the user with a name, in any spelling if a directory provisions the user; else the
    spelling must be exact. None if there is none. One BatchGetItem, two for another spelling."""
    lock_key = keys.scim_name(USER, name.lower())
    raw, raw_scim, lock = table.batch_get([keys.user(name), keys.scim_user(name), lock_key])
    user = _scim_user(raw, raw_scim)
    if user is not None or lock is None:
        return user
    return find(ScimName.of(lock).scim_id)


def find_by(attribute: str, text: str) -> list[ScimUser]:
    """Returns the SCIM users whose external id, or e-mail address in any spelling, is ``text``. One
    Query per MB, and one round trip that reads the users.

    Args:
        attribute: :data:`EXTERNAL_ID` or :data:`E_MAIL`.
    """
    pk = keys.scim_value(USER, attribute, _folded(attribute, text), "").pk
    ids = [ScimValue.of(item).scim_id for item in table.query_all(pk)]
    entities = find_many(ids) if ids else []
    # A value that the user lost after its item was read does not count.
    wanted = (attribute, _folded(attribute, text))
    return [user for user in entities if wanted in _values(user)]


def page(first: int, count: int) -> tuple[int, list[ScimUser]]:
    """Returns how many users there are without service accounts, and at most ``count`` of them from
    position ``first`` (0 for the first) on, ordered by name. One Query per MB of all users' names,
    and one BatchGetItem per 50 returned users."""
    listed = map(UserName.of, table.query_all(keys.USER_NAME.pk.text))
    names = [item.username for item in listed if not item.is_service_account]
    entities = _read(names[first : first + count])
    return len(names), [user for user in entities if user is not None]


def create(new_user: ScimUser) -> ScimUser:
    """Creates a user, without a password or grants. Raises UserNameTaken.

    Args:
        new_user: the user's name, ``is_active``, external id and attributes; the rest is ignored.
    """
    name, now = new_user.user.username, now_ms()
    lock_key = keys.scim_name(USER, name.lower())
    raw, lock = table.batch_get([keys.user(name), lock_key])
    if raw is not None or (lock is not None and find(ScimName.of(lock).scim_id) is not None):
        raise UserNameTaken(name)
    user = new_user.user._replace(user_id=next_number("user"), password_hash="", is_admin=False)
    made = new_user._replace(user=user, version=1, created_at=now, updated_at=now)
    key, listed = keys.user(name), keys.user_name(name)
    item = UserItem(
        PK=key.pk,
        SK=key.sk,
        username=name,
        user_id=user.user_id,
        password_hash="",
        is_admin=False,
        role_ids={},
        is_inactive=None if user.is_active else True,
        version=1,
        updated_at=now,
    )
    absent = ConditionExpression()
    absent.require_absent(UserItem.PK)
    operations: list[Operation] = [
        Put(item.serialize(), absent),
        Put(UserName(PK=listed.pk, SK=listed.sk, username=name, updated_at=now).serialize()),
        Put(_item(made)),
        scim_lookup_items.reserving(USER, name, made.scim_id, lock),
        *(Put(value) for value in _value_items(made)),
    ]
    try:
        table.transact(operations, new_ulid())
    except TransactionFailed as failed:
        raise UserNameTaken(name) from failed
    return made


def update(scim_id: str, edit: Edit) -> ScimUser | None:
    """Changes a user for a SCIM directory, and returns the user as stored; None if there is no such
    user. Nothing is written if nothing changes. Two round trips, up to four if the directory writes
    this user for the first time; more after a write conflict.

    Raises:
        UserNameTaken: the directory has not written this user yet, but provisions another user
            whose name differs only in upper and lower case.
    """

    def attempt() -> ScimUser | None:
        before = find(scim_id)
        if before is None:
            return None
        after = edit(before)
        if after == before:
            return before
        now = now_ms()
        after = after._replace(
            version=before.version + 1, created_at=before.created_at or now, updated_at=now
        )
        try:
            table.transact(_changing(before, after), new_ulid())
        except TransactionFailed as failed:
            raise WriteConflict from failed
        return after

    return retry_on_conflict("user", attempt)


def _changing(before: ScimUser, after: ScimUser) -> list[Operation]:
    change = Update()
    if after.user.is_active != before.user.is_active:
        change.set_or_remove(UserItem.is_inactive, None if after.user.is_active else True)
    change.add(UserItem.version, 1)
    change.require_equal(UserItem.user_id, before.user.user_id)
    same = ConditionExpression()
    if before.version:
        same.require_equal(ScimUserItem.version, before.version)
        same.require_equal(ScimUserItem.user_id, before.user.user_id)
    else:
        same.require_absent_or_other(ScimUserItem.user_id, before.user.user_id)
    operations: list[Operation] = [
        ItemUpdate(keys.user(after.user.username), change),
        Put(_item(after), same),
    ]
    if not before.version:
        name = after.user.username
        lock = table.get(keys.scim_name(USER, name.lower()))
        if lock is not None and find(ScimName.of(lock).scim_id) not in (None, before):
            raise UserNameTaken(name)
        operations.append(scim_lookup_items.reserving(USER, name, after.scim_id, lock))
    old, new = _values(before) if before.version else set(), _values(after)
    operations += [Put(item) for item in _value_items(after, new - old)]
    operations += [
        Delete(keys.scim_value(USER, attribute, text, after.scim_id))
        for attribute, text in sorted(old - new)
    ]
    return operations


def forget(user: User, *, by_directory: bool = False) -> None:
    """Deletes what a directory said about a user who is about to be deleted. Idempotent. One round
    trip, two if there is something to write.

    Args:
        by_directory: whether the directory deletes the user. If so, a login cannot create the user
            again for :data:`DELETED_SECONDS`.
    """
    item = table.get(keys.scim_user(user.username))
    if item is None and not by_directory:
        return
    stored = None if item is None else ScimUserItem.of(item)
    lock_key = keys.scim_name(USER, user.username.lower())
    puts: list[Raw] = []
    deletes = [keys.scim_user(user.username)]
    if stored is not None and stored.user_id == user.user_id:
        known = _with(user, item)
        deletes += [
            keys.scim_value(USER, attribute, text, known.scim_id)
            for attribute, text in sorted(_values(known))
        ]
        if not by_directory:
            deletes.append(lock_key)
    if by_directory:
        gone = ScimName(
            PK=lock_key.pk,
            SK=lock_key.sk,
            scim_id=_with(user, None).scim_id,
            is_deleted=True,
            ttl=now_ms() // 1_000 + DELETED_SECONDS,
            updated_at=now_ms(),
        )
        puts.append(gone.serialize())
    table.batch_write(puts=puts, deletes=deletes)


def deactivate(user: User) -> None:
    """Deactivates a user, so that no login of the user is accepted; one UpdateItem. Of
    the other attributes only the version changes. Does nothing if the user no longer exists."""
    change = Update()
    change.set(UserItem.is_inactive, True)
    change.add(UserItem.version, 1)
    change.require_equal(UserItem.user_id, user.user_id)
    try:
        table.update(keys.user(user.username), change)
    except ConditionFailed:
        return


def _read(usernames: Sequence[str]) -> Iterator[ScimUser | None]:
    item_keys = [key for name in usernames for key in (keys.user(name), keys.scim_user(name))]
    items = table.batch_get(item_keys)
    return map(_scim_user, items[::2], items[1::2])


def _scim_user(raw: Raw | None, raw_scim: Raw | None) -> ScimUser | None:
    user = None if raw is None else users.user_in(raw)
    if user is None or user.password_hash == SERVICE_ACCOUNT_HASH:
        return None
    return _with(user, raw_scim)


def _with(user: User, raw: Raw | None) -> ScimUser:
    item = None if raw is None else ScimUserItem.of(raw)
    if item is None or item.user_id != user.user_id:
        return ScimUser(user, None, {}, 0, None, None)
    return ScimUser(
        user,
        item.external_id,
        json.loads(item.attributes),
        item.version,
        item.created_at,
        item.updated_at,
    )


def _item(entity: ScimUser) -> Raw:
    key = keys.scim_user(entity.user.username)
    return ScimUserItem(
        PK=key.pk,
        SK=key.sk,
        username=entity.user.username,
        user_id=entity.user.user_id,
        external_id=entity.external_id,
        attributes=json.dumps(entity.attributes, ensure_ascii=False, separators=(",", ":")),
        version=entity.version,
        created_at=entity.created_at,
        updated_at=entity.updated_at,
    ).serialize()


def _values(entity: ScimUser) -> set[tuple[str, str]]:
    """Returns the (attribute, value) pairs by which a user is found."""
    pairs = [(E_MAIL, entry.get("value")) for entry in entity.attributes.get("emails", ())]
    pairs.append((EXTERNAL_ID, entity.external_id))
    return {(attribute, _folded(attribute, text)) for attribute, text in pairs if text}


def _value_items(entity: ScimUser, values: Iterable[tuple[str, str]] | None = None) -> list[Raw]:
    return [
        scim_lookup_items.value_item(
            keys.scim_value(USER, attribute, text, entity.scim_id), entity.scim_id
        )
        for attribute, text in sorted(_values(entity) if values is None else values)
    ]


def _folded(attribute: str, text: str) -> str:
    """Returns a value as it is compared: addresses are equal in any spelling, external ids are
    not."""
    return text.lower() if attribute == E_MAIL else text
