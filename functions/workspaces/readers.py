"""Who may read the system tables besides administrators, and the rows of which workspaces."""

from __future__ import annotations

from typing import Any

from mlcore.http import Request
from mlcore.repos.settings import system_tables
from mlcore.repos.workspaces import workspaces
from workspaces import messages as m


def list_readers(message: m.ListReaders, request: Request) -> dict[str, Any]:
    """The readers by name, and the workspaces that can be granted."""
    found = sorted(system_tables.find_all().items())
    return {
        "readers": [_reader(username, names) for username, names in found],
        "workspaces": [one.name for one in workspaces.find_all()],
    }


def put_reader(message: m.PutReader, request: Request) -> dict[str, Any]:
    """Replaces what the user could read before. Counts from the next query on.

    Raises:
        ResourceDoesNotExist: there is no such workspace.
    """
    names = sorted(set(message.workspaces))
    if system_tables.ALL in names:
        names = [system_tables.ALL]
    system_tables.grant(message.username, names)
    return {"reader": _reader(message.username, names)}


def delete_reader(message: m.DeleteReader, request: Request) -> dict[str, Any]:
    """Counts from the next query on. May be repeated."""
    system_tables.revoke(message.username)
    return {}


def _reader(username: str, names: list[str]) -> dict[str, Any]:
    return {"username": username, "workspaces": names}
