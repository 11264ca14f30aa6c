"""API keys: one partition for each owner. A token is shown once; its hash is stored.

A token is ``mlk_<key id>_<secret>``. The key's id begins with the owner's number, so that one read
finds the key. The secret has 256 random bits: nobody can guess it, so a plain SHA-256 suffices.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import time
from hashlib import sha256
from typing import Final, NamedTuple

from mlcore import errors
from mlcore.auth.api_key_tokens import TOKEN
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.users import ApiKey, User
from mlcore.ids import now_ms
from mlcore.models.users import ApiKey as ApiKeyItem
from mlcore.observability import logger
from mlcore.process_cache import ProcessCache
from mlcore.repos.users import users

_KEY_ID: Final = re.compile(r"(?P<user>[1-9][0-9]{0,15})-[0-9a-f]{20}", re.A)

MAX_KEYS: Final = 100
"""Keys of one owner, those that expired less than 30 days ago included."""
KEPT_SECONDS: Final = 30 * 86_400
"""How long an expired key stays listed."""

_owners: Final[ProcessCache[str, str]] = ProcessCache("owner of an API key")
"""The owner's name by key id. It never changes, so one BatchGetItem reads key and owner."""


class TokenOfKey(NamedTuple):
    """A user's new API key, and its token, which only the user gets: it is not stored."""

    key: ApiKey
    token: str


def is_token(text: str) -> bool:
    """Whether a bearer token or password has the form of an API key of this product's users."""
    return TOKEN.fullmatch(text) is not None


def verify(token: str) -> tuple[ApiKey, User] | None:
    """Returns the API key with this token, and its owner; None if the key is unknown, expired or
    revoked, or the owner was deleted or deactivated.

    Nothing that can change is cached: a revoked key is refused from the next request on. One
    BatchGetItem, two for the first request of a process with the key. The first use of the key on a
    day also writes this day to the key's item, if the table takes writes.
    """
    match = TOKEN.fullmatch(token)
    if match is None:
        return None
    key_id = match["key"]
    item_key = _place(key_id)
    owner = _owners.get(key_id)
    if owner is None:
        (item,) = table.batch_get([item_key])
        if item is None or not _is_token_of(item, token):
            return None
        owner = ApiKeyItem.of(item).username
        _owners.put(key_id, owner)
    item, user_item = table.batch_get([item_key, keys.user(owner)])
    if item is None or user_item is None or not _is_token_of(item, token):
        return None
    key, user = _key_in(item), users.user_in(user_item)
    if user.user_id != key.user_id or not user.is_active:
        return None
    if key.expires_at is not None and key.expires_at <= now_ms():
        return None
    _note_use(key, item_key)
    return key, user


def _is_token_of(item: Raw, token: str) -> bool:
    return hmac.compare_digest(ApiKeyItem.of(item).secret_hash, _hash(token))


def _note_use(key: ApiKey, item_key: Key) -> None:
    today = int(time.time()) // 86_400
    if key.used_on is not None and key.used_on >= today:
        return
    change = Update()
    change.set(ApiKeyItem.used_on, today)
    change.require_exists(ApiKeyItem.PK)
    change.require_absent_or_less(ApiKeyItem.used_on, today)
    try:
        table.update(item_key, change)
    except ConditionFailed:
        return  # another request noted it, or the key was just revoked
    except errors.MlflowError:
        # While the table takes no writes, the key's owner can still read.
        logger.warning("the use of an API key was not recorded", extra={"key_id": key.key_id})


def find_all(user: User) -> list[ApiKey]:
    """Returns the API keys of a user, oldest first; one Query."""
    partition = keys.api_key(str(user.user_id), "").pk
    api_keys = [_key_in(item) for item in table.query_all(partition)]
    return sorted(api_keys, key=lambda key: (key.created_at, key.key_id))


def find(key_id: str) -> ApiKey | None:
    """Returns an API key of a user; None if it is missing or the id is malformed."""
    if _KEY_ID.fullmatch(key_id) is None:
        return None
    item = table.get(_place(key_id))
    return None if item is None else _key_in(item)


def owner_of(key_id: str) -> int | None:
    """Returns the number of the user to whom an API key with this id would belong, without a
    request; None for a malformed id. (A key's id begins with its owner's number.)"""
    match = _KEY_ID.fullmatch(key_id)
    return None if match is None else int(match["user"])


def create(
    user: User,
    name: str,
    workspace: str,
    scopes: tuple[str, ...] | None,
    expires_at: int | None,
) -> TokenOfKey:
    """Creates an API key of a user. Raises InvalidParameterValue if the user has too many.

    Args:
        scopes: the scopes to which the key is limited; None for no limit.
        expires_at: when the key expires, in milliseconds since the epoch; None for never.
    """
    if len(find_all(user)) >= MAX_KEYS:
        raise errors.InvalidParameterValue(
            f"{user.username} has {MAX_KEYS} API keys, which is the limit. Delete some first."
        )
    key_id = f"{user.user_id}-{secrets.token_hex(10)}"
    token = f"mlk_{key_id}_{secrets.token_urlsafe(32)}"
    item_key, now = _place(key_id), now_ms()
    item = ApiKeyItem(
        PK=item_key.pk,
        SK=item_key.sk,
        version=1,
        key_id=key_id,
        name=name,
        username=user.username,
        user_id=user.user_id,
        secret_hash=_hash(token),
        workspace=workspace,
        scopes=None if scopes is None else json.dumps(scopes, ensure_ascii=False),
        created_at=now,
        updated_at=now,
        expires_at=expires_at,
        ttl=None if expires_at is None else _ttl(expires_at),
    ).serialize()
    table.put(item)
    return TokenOfKey(_key_in(item), token)


def expire(key: ApiKey, expires_at: int) -> None:
    """Sets when an API key stops being valid (milliseconds since the epoch), unless it is earlier
    already. Raises ResourceDoesNotExist if the key was revoked."""
    change = Update()
    change.set(ApiKeyItem.expires_at, expires_at)
    change.set(ApiKeyItem.ttl, _ttl(expires_at))
    change.add(ApiKeyItem.version, 1)
    change.require_exists(ApiKeyItem.PK)
    change.require_absent_or_greater(ApiKeyItem.expires_at, expires_at)
    try:
        table.update(_place(key.key_id), change)
    except ConditionFailed as failed:
        if failed.item is None:
            raise missing(key.key_id) from failed


def delete(key_id: str) -> None:
    """Revokes an API key: it is refused from the next request on. Idempotent."""
    table.delete(_place(key_id))


def delete_all(user: User) -> None:
    """Revokes all API keys of a user."""
    table.batch_write(deletes=[_place(key.key_id) for key in find_all(user)])


def missing(key_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"API key with id '{key_id}' not found.")


def _place(key_id: str) -> Key:
    return keys.api_key(key_id.partition("-")[0], key_id)


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _ttl(expires_at: int) -> int:
    return expires_at // 1_000 + KEPT_SECONDS


def _key_in(item: Raw) -> ApiKey:
    stored = ApiKeyItem.of(item)
    return ApiKey(
        stored.key_id,
        stored.name,
        stored.user_id,
        stored.username,
        stored.workspace,
        None if stored.scopes is None else tuple(json.loads(stored.scopes)),
        stored.created_at,
        stored.expires_at,
        stored.used_on,
    )
