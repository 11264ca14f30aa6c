"""Finds the system tables that need maintenance, so that tables without changes are not opened each
hour, which would cost money for nothing.

A table's maintenance is *complete* if it began more than a day after the last change: then no file
is left that only past versions need. ``record_complete`` writes an empty object that names the
table's version at that time. The table needs no maintenance while it has this version and no newer
files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Final

from mlcore.system_tables import storage
from mltables.table_columns import Table
from mltables.table_definitions import KEPT_HOURS

COMPLETE_SECONDS: Final = (KEPT_HOURS + 1) * 3600
"""A maintenance that begins so long after the last change of a table deletes all files that the
table does not need."""
_TABLES: Final = storage.table_key("").rstrip("/")
_ROOT: Final = _TABLES.rpartition("/")[0]
_MARKS: Final = f"{_ROOT}/settled"
_ENTRY: Final = re.compile(r"_delta_log/(\d{20})\.json")


class StoredTable:
    """The state of a system table (its version and the time of its last change) according to a
    listing of its files."""

    def __init__(self) -> None:
        self.changed = 0
        """The time of the last change of its files, in seconds since 1970."""
        self.completed: dict[int, int] = {}
        """When the maintenance of a version was recorded as complete (seconds since 1970), by
        version."""
        self.version = -1
        """The version of the last entry of its log; -1 if the table has no log."""
        self.first_partition = ""
        """The smallest value of its partition column, such as the oldest day; "" without
        partitions."""

    def add(self, name: str, modified: int) -> None:
        """Updates the attributes of this object by one file of the table: by the file's time, and
        by the version or partition in its name.

        Args:
            name: its path in the table's folder.
            modified: when it was written, in seconds since 1970.
        """
        self.changed = max(self.changed, modified)
        if match := _ENTRY.fullmatch(name):
            self.version = max(self.version, int(match[1]))
        if partition := name.partition("/")[0].partition("=")[2]:
            self.first_partition = min(self.first_partition or partition, partition)


def stored_tables() -> Mapping[str, StoredTable]:
    """Returns the system tables that exist in the file store, by name. Costs one list request for
    each thousand files of all these tables."""
    states: dict[str, StoredTable] = {}
    for file in storage.store().below(_ROOT):
        folder, _, name = file.key.removeprefix(f"{_TABLES}/").partition("/")
        if file.key.startswith(f"{_MARKS}/"):
            table, _, version = file.key.removeprefix(f"{_MARKS}/").partition("/")
            states.setdefault(table, StoredTable()).completed[int(version)] = file.modified
        elif file.key.startswith(f"{_TABLES}/"):
            states.setdefault(folder, StoredTable()).add(name, file.modified)
    return {name: table for name, table in states.items() if table.version >= 0}


def needing_maintenance(tables: Iterable[Table], stored: Mapping[str, StoredTable]) -> list[Table]:
    """Returns those of these system tables that exist and have changed since their last complete
    maintenance (:func:`record_complete`)."""
    existing = [(table, stored[table.name]) for table in tables if table.name in stored]
    return [
        table for table, state in existing if state.changed > state.completed.get(state.version, 0)
    ]


def record_complete(table: Table, before: StoredTable, version: int) -> None:
    """Writes the mark that a table of this version needs no maintenance, if its maintenance was
    complete: if the maintenance committed nothing, and the last change of the table is more than a
    day old.

    Args:
        before: the state of the table when the maintenance began.
        version: the version of the table when unneeded files were deleted. If it is newer than that
            in ``before``, the maintenance is not complete: the files that it merged stay for a day.
    """
    if before.version == version and before.changed < time.time() - COMPLETE_SECONDS:
        storage.store().put(f"{_MARKS}/{table.name}/{version}", b"")
        for old in before.completed.keys() - {version}:
            storage.store().delete(f"{_MARKS}/{table.name}/{old}")
