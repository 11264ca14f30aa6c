"""Tells which system tables need upkeep. A table that has not changed since its upkeep has no small
files, and none that only its past versions need; to open it each hour would cost money for nothing.

An upkeep that begins a day after the last change of a table leaves nothing to delete. It writes an
empty object that names the version: the table is settled while it has this version and no newer
files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Final

from mlcore.system_tables import location
from mltables.table_columns import Table
from mltables.table_definitions import KEPT_HOURS

SETTLED_SECONDS: Final = (KEPT_HOURS + 1) * 3600
"""So long after the last change of a table its upkeep deletes all files that it does not need."""
_TABLES: Final = location.table_key("").rstrip("/")
_ROOT: Final = _TABLES.rpartition("/")[0]
_MARKS: Final = f"{_ROOT}/settled"
_ENTRY: Final = re.compile(r"_delta_log/(\d{20})\.json")


class StoredTable:
    """What a listing tells about a table."""

    def __init__(self) -> None:
        self.changed = 0
        """The time of the last change of its files, in seconds since 1970."""
        self.settled: dict[int, int] = {}
        """The times at which versions were noted as settled."""
        self.version = -1
        """The version of the last entry of its log; -1 if the table has no log."""
        self.first_partition = ""
        """The smallest of its partitions."""

    def add(self, name: str, modified: int) -> None:
        """Adds a file by its name within the table's folder."""
        self.changed = max(self.changed, modified)
        if match := _ENTRY.fullmatch(name):
            self.version = max(self.version, int(match[1]))
        if partition := name.partition("/")[0].partition("=")[2]:
            self.first_partition = min(self.first_partition or partition, partition)


def stored_tables() -> Mapping[str, StoredTable]:
    """Returns the tables that exist, by name. Costs one list request for each thousand files of all
    tables."""
    found: dict[str, StoredTable] = {}
    for file in location.store().below(_ROOT):
        folder, _, name = file.key.removeprefix(f"{_TABLES}/").partition("/")
        if file.key.startswith(f"{_MARKS}/"):
            table, _, version = file.key.removeprefix(f"{_MARKS}/").partition("/")
            found.setdefault(table, StoredTable()).settled[int(version)] = file.modified
        elif file.key.startswith(f"{_TABLES}/"):
            found.setdefault(folder, StoredTable()).add(name, file.modified)
    return {name: table for name, table in found.items() if table.version >= 0}


def unsettled(tables: Iterable[Table], stored: Mapping[str, StoredTable]) -> list[Table]:
    """Returns the tables that exist and have changed since their last complete maintenance, so that
    they need it again."""
    existing = [(table, stored[table.name]) for table in tables if table.name in stored]
    return [
        table for table, found in existing if found.changed > found.settled.get(found.version, 0)
    ]


def note(table: Table, before: StoredTable, version: int) -> None:
    """Notes that a table is settled, after an upkeep has deleted its files, if it is.

    Args:
        before: the table as it was when the upkeep began.
        version: the version of which files were kept. The upkeep itself may have made a newer one,
            whose files stay for a day.
    """
    if before.version == version and before.changed < time.time() - SETTLED_SECONDS:
        location.store().put(f"{_MARKS}/{table.name}/{version}", b"")
        for old in before.settled.keys() - {version}:
            location.store().delete(f"{_MARKS}/{table.name}/{old}")
