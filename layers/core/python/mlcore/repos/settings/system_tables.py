"""The setting ``system_tables_readers``: who may ask SQL of the system tables besides
administrators, and about which workspaces.

The setting is one item, ``{"ann": ["*"], "bob": ["team-a"]}``. Each change is conditional on what
was read, so two administrators who grant at the same time both succeed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Condition
from mlcore.db.table import Put, TransactionFailed, table
from mlcore.ids import new_ulid, now_ms
from mlcore.models.platform import Config
from mlcore.repos.workspaces import workspaces
from mlcore.settle import Conflict, settle

SETTING: Final = "system_tables_readers"
ALL: Final = "*"
MOST_CHARACTERS: Final = 300_000
"""Of the whole setting: an item of DynamoDB ends at 400 KB."""

Readers = dict[str, list[str]]
"""For each user the names of workspaces, or ``["*"]``."""


def granted(username: str) -> tuple[str, ...]:
    """The workspaces whose rows somebody may read, ``*`` for all. One GetItem: what is taken away
    is gone at once."""
    return tuple(find_all().get(username, ()))


def find_all() -> Readers:
    """Every reader; one GetItem."""
    return _read()[0]


def grant(username: str, names: Sequence[str]) -> None:
    """Lets a user read the rows of these workspaces, instead of those granted before.

    Two round trips. The workspaces are part of the transaction: one that is deleted at the same
    time is refused, or takes the grant with it.

    Raises:
        ResourceDoesNotExist: there is no such workspace.
        InvalidParameterValue: there are too many readers.
    """
    _change(lambda readers: {**readers, username: list(names)}, names)


def revoke(username: str) -> bool:
    """Takes everything from a user; whether there was anything. May be repeated."""
    return _change(lambda readers: {k: v for k, v in readers.items() if k != username})


def forget_workspace(name: str) -> None:
    """Takes a workspace from every reader: its name may come back for another one. May be
    repeated."""

    def without(readers: Readers) -> Readers:
        kept = {user: [one for one in names if one != name] for user, names in readers.items()}
        return {user: names for user, names in kept.items() if names}

    _change(without)


def check_workspaces(names: Iterable[str]) -> None:
    """
    Raises:
        ResourceDoesNotExist: one of them does not exist.
    """
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
    """Writes the readers anew; whether they have changed.

    Args:
        made: the new readers, from those that were read.
        names: workspaces that must exist.
    """
    place = keys.config(SETTING)
    entered = [one for name in sorted(set(names) - {ALL}) for one in workspaces.entering(name)]

    def attempt() -> bool:
        before, text = _read()
        after = made(before)
        if after == before:
            check_workspaces(names)
            return False
        value = json.dumps(after, ensure_ascii=False, separators=(",", ":"))
        if len(value.encode()) > MOST_CHARACTERS:
            raise errors.InvalidParameterValue(
                f"The readers of the system tables take more than {MOST_CHARACTERS} bytes: "
                f"grant '{ALL}' instead of many workspaces, or take away what nobody needs."
            )
        unchanged = Condition()
        if text is None:
            unchanged.require_absent(Config.PK)
        else:
            unchanged.require_equal(Config.value, text)
        item = Config(
            PK=place.pk, SK=place.sk, key=SETTING, value=value, updated_at=now_ms(), version=1
        )
        try:
            table.transact([Put(item.serialize(), unchanged), *entered], new_ulid())
        except TransactionFailed as failed:
            if 0 in failed.items:
                raise Conflict from failed
            check_workspaces(names)
            raise Conflict from failed
        return True

    return settle("list of readers", attempt)
