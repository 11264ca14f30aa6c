"""Tells which system tables need upkeep. A table that has not changed for days has no small files,
and no files that its past versions need; to open it each hour would cost money for nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from mlcore.system_tables import location
from mltables.table_columns import Table
from mltables.table_definitions import KEPT_HOURS

SETTLED_SECONDS: Final = 7 * KEPT_HOURS * 3600
"""The upkeep of a table ends so long after its last change. An upkeep that merges or deletes files
needs a day for it; the rest is for failures."""


class StoredTable:
    """What a listing tells about a table: the time of the last change of its files (seconds since
    1970) and the smallest of its partitions."""

    def __init__(self) -> None:
        self.changed = 0
        self.first_partition = ""

    def add(self, partition: str, modified: int) -> None:
        """Adds a file."""
        self.changed = max(self.changed, modified)
        if partition:
            self.first_partition = min(self.first_partition or partition, partition)


def stored_tables() -> Mapping[str, StoredTable]:
    """Returns the tables that exist, by name. Costs one list request for each thousand files of all
    tables."""
    root = location.table_key("")
    found: dict[str, StoredTable] = {}
    for file in location.store().below(root.rstrip("/")):
        name, _, rest = file.key.removeprefix(root).partition("/")
        partition = rest.partition("/")[0].partition("=")[2]
        found.setdefault(name, StoredTable()).add(partition, file.modified)
    return found


def unsettled(tables: Iterable[Table], stored: Mapping[str, StoredTable]) -> list[Table]:
    """Returns those of these tables that changed in the last days."""
    since = time.time() - SETTLED_SECONDS
    return [
        table for table in tables if table.name in stored and stored[table.name].changed >= since
    ]
