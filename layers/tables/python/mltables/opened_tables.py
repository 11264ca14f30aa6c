"""The system tables that an SQL query reads. Each is opened once, so all steps see one version."""

from __future__ import annotations

from deltalake import DeltaTable

from mltables import time_travel
from mltables.lake import Lake
from mltables.table_columns import Table
from mltables.table_definitions import open_if_exists
from mltables.time_travel import Moment


class OpenedTables:
    """Opens system tables, and returns the same version of a table at each later call."""

    def __init__(self) -> None:
        self.lake = Lake()
        self._opened: dict[tuple[str, Moment | None], DeltaTable | None] = {}

    def at(self, table: Table, moment: Moment | None = None) -> DeltaTable | None:
        """Returns a Delta table in the version that ``moment`` gives by time or number; None if
        nothing was published yet. Raises StatementRefused if the table has no such version.

        Args:
            moment: None for the version that is current at the first call.
        """
        key = table.name, moment
        if key not in self._opened:
            delta = open_if_exists(self.lake, table)
            if delta is not None and moment is not None:
                time_travel.travel(delta, moment)
            self._opened[key] = delta
        return self._opened[key]
