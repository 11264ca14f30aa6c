"""The chain of hashes over the rows of ``audit_log``, and the pseudonyms of people in it.

Rows are numbered in the order of their publication. The hash of a row covers the row and the hash
of the row before it, so a row that is changed, removed, added or moved breaks the chain from there
on. But the last rows could be removed, and somebody who can write the table could compute the whole
chain again. So the last hash of each day must be noted elsewhere, to prove that no row was changed.

The hash covers a person's pseudonym and not the name. So a name can be erased without breaking the
chain.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from typing import Any, Final, NamedTuple

PROPERTY: Final = "mlflow-serverless.pseudonym-key"
"""The property of the Delta table with the key of its pseudonyms. It is written once, when the
table is created."""
BEGINNING: Final = "0" * 64
"""The hash that stands for the row before the first one."""
PERSONS: Final = ("username", "user_id")
"""Fields of ``entity`` that name one or more persons. ``user_id`` is the user whom a client names
as the creator of a run."""
_PSEUDONYM: Final = re.compile(r"person-[0-9a-f]{16}")


class Event(NamedTuple):
    """One audited request. Its fields are columns of ``audit_log``; times are in milliseconds since
    1970."""

    event_time: int
    record_id: str
    workspace_id: str
    user_name: str | None
    user_id: str | None
    login: str
    key_id: str | None
    is_admin: bool
    address: str
    rpc: str
    method: str
    http_status: int
    outcome: str
    entity: str


def new_key() -> str:
    return secrets.token_hex(32)


def pseudonym(name: str, key: str) -> str:
    """Returns the pseudonym of a user. The same name and key always give the same pseudonym."""
    digest = hmac.new(bytes.fromhex(key), name.encode(), hashlib.sha256).hexdigest()
    return f"person-{digest[:16]}"


def erased(event: Event, name: str, key: str) -> Event:
    """Returns the event of the audit without a user's name: ``user_name`` becomes None, and the
    pseudonym takes its place in ``entity``. The hash of the row stays the same."""
    replaced = event._replace(user_name=None) if event.user_name == name else event
    fields = json.loads(event.entity)
    for field in PERSONS:
        if field in fields:
            fields[field] = _each(
                fields[field],
                lambda username: pseudonym(username, key) if username == name else username,
            )
    return replaced._replace(entity=json.dumps(fields, sort_keys=True))


def hash_of(event: Event, inserted: int, sequence: int, previous: str, key: str) -> str:
    """Returns the hash of a row of ``audit_log``, which also covers the row before it.

    Args:
        inserted: when the row was published, in milliseconds since 1970.
        previous: the hash of the row before it.
        key: the key of the pseudonyms.
    """
    fields = json.loads(event.entity)
    for field in PERSONS:
        if field in fields:
            fields[field] = _each(fields[field], lambda username: _hidden(username, key))
    covered = event._replace(user_name=None, entity=json.dumps(fields, sort_keys=True))
    text = json.dumps([previous, sequence, inserted, *covered], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def names_the_person(event: Event, key: str) -> bool:
    """Whether the user name in a row of the audit belongs to the pseudonym in the same row. True
    also if the name was erased."""
    return event.user_name is None or event.user_id == pseudonym(event.user_name, key)


def _hidden(name: str, key: str) -> str:
    return name if _PSEUDONYM.fullmatch(name) else pseudonym(name, key)


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, list):
        return [change(element) if isinstance(element, str) else element for element in value]
    return change(value) if isinstance(value, str) else value
