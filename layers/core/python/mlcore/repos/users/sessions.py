"""Sessions of browsers. The table has the hash of a session's id, so nobody who reads the table can
continue a session."""

from __future__ import annotations

import hashlib
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.users import Session, User
from mlcore.errors import MlflowError
from mlcore.ids import now_ms
from mlcore.models.users import Session as SessionItem
from mlcore.observability import logger
from mlcore.repos.users import users

MAXIMUM_SECONDS: Final = 30 * 86_400
"""How long a session lasts at most, whatever the deployment says."""


def start(session: Session) -> None:
    """Stores a new browser session. DynamoDB deletes its item some time after it has expired."""
    key = _key(session.username, session.session_id)
    item = SessionItem(
        PK=key.pk,
        SK=key.sk,
        username=session.username,
        user_id=session.user_id,
        issuer=session.issuer,
        is_admin=session.is_admin,
        started_at=session.started_at,
        seen_at=session.seen_at,
        expires_at=session.expires_at,
        ttl=session.expires_at,
        updated_at=now_ms(),
        hint=session.hint or None,
    )
    table.put(item.serialize())


def find(username: str, session_id: str) -> tuple[User | None, Session | None]:
    """Returns a user and the user's browser session, which may have ended. (None, None) if one of
    the two does not exist, or if the session belongs to a former user of the same name. One
    BatchGetItem."""
    key = _key(username, session_id)
    raw_user, raw = table.batch_get([keys.user(username), key])
    if raw_user is None or raw is None:
        return None, None
    user, session = users.user_in(raw_user), _session(raw, session_id)
    return (user, session) if session.user_id == user.user_id else (None, None)


def touch(session: Session, now: int) -> None:
    """Records that a browser session was used now. Does nothing if it was ended meanwhile. While
    the table takes no writes, the use is only logged: who is signed in can still read."""
    change = Update()
    change.set(SessionItem.seen_at, now)
    change.require_exists(SessionItem.PK)
    try:
        table.update(_key(session.username, session.session_id), change)
    except ConditionFailed:
        return
    except MlflowError:
        logger.warning("the use of a session was not recorded")


def end(username: str, session_id: str) -> None:
    """Ends a browser session of a user. Idempotent."""
    table.delete(_key(username, session_id))


def end_all(username: str) -> int:
    """Ends all browser sessions of a user; returns how many there were."""
    pk = keys.session(username, "").pk
    places = [Key(pk, SessionItem.of(item).SK) for item in table.query_all(pk)]
    table.batch_write(deletes=places)
    return len(places)


def _key(username: str, session_id: str) -> Key:
    return keys.session(username, hashlib.sha256(session_id.encode()).hexdigest())


def _session(raw: Raw, session_id: str) -> Session:
    item = SessionItem.of(raw)
    return Session(
        session_id,
        item.username,
        item.user_id,
        item.issuer,
        item.is_admin,
        item.started_at,
        item.seen_at,
        item.expires_at,
        item.hint or "",
    )
