"""The setting ``system_tables_readers``: who besides administrators may query the system tables
with SQL, and for which workspaces.

The setting is one item, ``{"ann": ["*"], "bob": ["team-a"]}``. Each change here is conditional on
the value read, so two administrators who grant at the same time both succeed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.table import Put, TransactionFailed, table
from mlcore.ids import new_ulid, now_ms
from mlcore.models.settings import Config
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.workspaces import workspaces

SETTING: Final = "system_tables_readers"
ALL: Final = "*"
MAX_BYTES: Final = 300_000
"""Maximum size of the whole setting as JSON; DynamoDB limits an item to 400 KB."""

Readers = dict[str, list[str]]
"""Names of workspaces by user, or ``["*"]``."""


def granted(username: str) -> tuple[str, ...]:
    """Returns the workspaces whose rows of the system tables a user may read, ``*`` for all. One
    GetItem, not cached, so a revocation takes effect at once."""
    return tuple(find_all().get(username, ()))


def find_all() -> Readers:
    """Returns the workspaces whose rows of the system tables each user may read, by the user's
    name; administrators are not listed. One GetItem."""
    return _read()[0]


def grant(username: str, names: Sequence[str]) -> None:
    """Sets the workspaces whose rows of the system tables a user may read, replacing earlier ones.

    Two round trips; if the setting does not change, one, and one more for each workspace. The
    transaction includes the workspaces, so a concurrent deletion of a workspace either makes the
    transaction fail or removes the grant too.

    Raises:
        ResourceDoesNotExist: a workspace does not exist.
        InvalidParameterValue: the setting would be too large, because it names too many users or
            workspaces.
    """
    _change(lambda readers: {**readers, username: list(names)}, names)


def revoke(username: str) -> bool:
    """Removes a user from the setting ``system_tables_readers``, so that the user may read system
    tables only as an administrator; returns whether the user was in it. Idempotent."""
    return _change(lambda readers: {k: v for k, v in readers.items() if k != username})


def forget_workspace(name: str) -> None:
    """Removes a deleted workspace from each user's entry in the setting ``system_tables_readers``,
    because its name may be used again. Idempotent."""

    def without(readers: Readers) -> Readers:
        kept = {user: [each for each in names if each != name] for user, names in readers.items()}
        return {user: names for user, names in kept.items() if names}

    _change(without)


def check_workspaces(names: Iterable[str]) -> None:
    """Raises ResourceDoesNotExist if one of the workspaces does not exist."""
    for name in sorted(set(names) - {ALL}):
        workspaces.get(name)


def _read() -> tuple[Readers, str | None]:
    item = table.get(keys.config(SETTING))
    if item is None:
        return {}, None
    text = Config.of(item).value
    readers: Readers = json.loads(text)
    return readers, text


def _change(made: Callable[[Readers], Readers], names: Sequence[str] = ()) -> bool:
    """Writes the changed list of readers, on the condition that it did not change since it was
    read. Returns whether it is different from before.

    Args:
        made: returns the new readers from the stored ones.
        names: workspaces that must exist.
    """
    key = keys.config(SETTING)
    entered = [
        guard for name in sorted(set(names) - {ALL}) for guard in workspaces.creation_guard(name)
    ]

    def attempt() -> bool:
        before, text = _read()
        after = made(before)
        if after == before:
            check_workspaces(names)
            return False
        value = json.dumps(after, ensure_ascii=False, separators=(",", ":"))
        if len(value.encode()) > MAX_BYTES:
            raise errors.InvalidParameterValue(
                f"The readers of the system tables take more than {MAX_BYTES} bytes: "
                f"grant '{ALL}' instead of many workspaces, or take away what nobody needs."
            )
        unchanged = ConditionExpression()
        if text is None:
            unchanged.require_absent(Config.PK)
        else:
            unchanged.require_equal(Config.value, text)
        item = Config(
            PK=key.pk, SK=key.sk, key=SETTING, value=value, updated_at=now_ms(), version=1
        )
        try:
            table.transact([Put(item.serialize(), unchanged), *entered], new_ulid())
        except TransactionFailed as failed:
            if 0 in failed.items:
                raise WriteConflict from failed
            check_workspaces(names)
            raise WriteConflict from failed
        return True

    return retry_on_conflict("list of readers", attempt)
