"""The keys that encrypt session cookies. Each is an item of the table, encrypted by KMS. A process
caches those that it has used, so a request costs no round trip for them.

A new key is made when the newest one is 30 days old. Older keys still decrypt cookies as long as a
session can last.
"""

from __future__ import annotations

import base64
import os
import re
import time
from typing import Any, Final, NamedTuple

from mlcore import secrets
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.errors import InternalError
from mlcore.ids import new_ulid, now_ms
from mlcore.models.users import SessionKey as SessionKeyItem
from mlcore.process_cache import ProcessCache
from mlcore.repos.users.sessions import MAXIMUM_SECONDS

ROTATION_SECONDS: Final = 30 * 86_400

_KEY_BYTES: Final = 32
_KEPT_SECONDS: Final = 3_600.0
_CONTEXT: Final = "session_key"

_LATEST: Final = "latest"
_KEY_ID: Final = re.compile("[0-9A-Z]{26}")


class SessionKey(NamedTuple):
    key_id: str
    key: bytes
    made_at: int


_opened: ProcessCache[str, SessionKey] = ProcessCache("session key", seconds=_KEPT_SECONDS)
_latest: ProcessCache[str, SessionKey] = ProcessCache("latest session key", seconds=_KEPT_SECONDS)


def find(key_id: str) -> SessionKey | None:
    """Returns the key for session cookies that has this id; None if there is none, or if it cannot
    be decrypted here. One GetItem and a call of KMS for a key that this process has not used yet; a
    cookie with a made-up key costs one GetItem, like a wrong password.

    Raises:
        TemporarilyUnavailable: KMS cannot be reached.
    """
    known = _opened.get(key_id)
    if known is not None or not _KEY_ID.fullmatch(key_id):
        return known
    raw = table.get(keys.session_key(key_id))
    return None if raw is None else _open(SessionKeyItem.of(raw))


def current() -> SessionKey:
    """Returns the key that encrypts new session cookies. Makes a key if there is none, or if the
    newest one is too old or cannot be decrypted here.

    Raises:
        TemporarilyUnavailable, RequestLimitExceeded: KMS or the table cannot be reached.
    """
    known = _latest.get(_LATEST)
    if known is None or known.made_at + ROTATION_SECONDS <= time.time():
        newest = max(_stored(), key=lambda item: item.made_at, default=None)
        is_usable = newest is not None and newest.made_at + ROTATION_SECONDS > time.time()
        opened = _open(newest) if newest is not None and is_usable else None
        known = opened or _make()
        _latest.put(_LATEST, known)
    return known


def _stored() -> list[Any]:
    pk = keys.session_key("").pk
    return [SessionKeyItem.of(item) for item in table.query_all(pk)]


def _open(item: Any) -> SessionKey | None:
    """Returns the key for cookies that an item holds, decrypted by KMS. None if a KMS key of
    another stack has encrypted it, from which the table was restored."""
    try:
        text = secrets.open_sealed(item.sealed, {_CONTEXT: item.key_id})
    except InternalError:
        return None
    key = SessionKey(item.key_id, base64.b64decode(text), item.made_at)
    _opened.put(key.key_id, key)
    return key


def _make() -> SessionKey:
    """Makes and stores a cookie key. If two processes make one at the same moment, each uses its
    own; both are in the table before a cookie is encrypted with them."""
    key = SessionKey(new_ulid(), os.urandom(_KEY_BYTES), int(time.time()))
    item_key = keys.session_key(key.key_id)
    item = SessionKeyItem(
        PK=item_key.pk,
        SK=item_key.sk,
        key_id=key.key_id,
        sealed=secrets.seal(base64.b64encode(key.key).decode(), {_CONTEXT: key.key_id}),
        made_at=key.made_at,
        ttl=key.made_at + ROTATION_SECONDS + MAXIMUM_SECONDS + int(_KEPT_SECONDS),
        updated_at=now_ms(),
    )
    absent = ConditionExpression()
    absent.require_absent(SessionKeyItem.PK)
    try:
        table.put(item.serialize(), absent)
    except ConditionFailed:  # pragma: no cover - two ULIDs that are equal
        return _make()
    _opened.put(key.key_id, key)
    return key
