"""Lists and changes which users besides administrators may read the system tables, and the rows of
which workspaces."""

from __future__ import annotations

from typing import Any

from mlcore.http import Request
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.workspaces import workspaces
from workspaces import messages as m


def list_readers(message: m.ListReaders, request: Request) -> dict[str, Any]:
    """Lists the users besides administrators who may read the system tables, by name, and all
    workspaces: an administrator can allow a user to read the rows of each."""
    readers = sorted(system_tables_readers.find_all().items())
    return {
        "readers": [_reader(username, names) for username, names in readers],
        "workspaces": [workspace.name for workspace in workspaces.find_all()],
    }


def put_reader(message: m.PutReader, request: Request) -> dict[str, Any]:
    """Replaces the workspaces whose rows in the system tables a user may read. Applies from the
    next query on. Raises ResourceDoesNotExist if a workspace does not exist, InvalidParameterValue
    if the setting becomes too large."""
    names = sorted(set(message.workspaces))
    if system_tables_readers.ALL in names:
        names = [system_tables_readers.ALL]
    system_tables_readers.grant(message.username, names)
    return {"reader": _reader(message.username, names)}


def delete_reader(message: m.DeleteReader, request: Request) -> dict[str, Any]:
    """Ends a user's access to the system tables, from the next SQL query on. Repeating the request
    has no further effect."""
    system_tables_readers.revoke(message.username)
    return {}


def _reader(username: str, names: list[str]) -> dict[str, Any]:
    return {"username": username, "workspaces": names}
