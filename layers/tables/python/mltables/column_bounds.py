"""Conditions on single columns, by which a query leaves out files and rows of a system table.

``file_pruning.py`` finds them in a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from mltables.snapshot import quoted
from mltables.span_attribute_columns import EVENT_NAMES
from mltables.table_columns import Table

_FIRST_YEAR: Final = 1000
"""The first year whose times can exclude files. Earlier years have fewer than four digits and would
sort wrongly as texts."""
_PRECISION: Final = timedelta(milliseconds=1)
"""Precision of times in the log of a table."""
IS_EMPTY: Final = "IS NULL"
"""The operator of a bound that NULL meets, and the empty text if the bound has that value."""
IS_GIVEN: Final = "IS NOT NULL"
"""The operator of a bound that every value but NULL meets."""
PARENT: Final = "parent_span_id"
"""The column that is empty for root spans."""


class ColumnBound(NamedTuple):
    """A condition such as ``column >= value``. With several values it holds if it is true for at
    least one of them."""

    column: str
    operator: str
    values: tuple[Any, ...]
    """SQL for DuckDB; after :func:`evaluate_bounds` texts or times."""

    @property
    def is_fixed(self) -> bool:
        """Whether the bound has neither a value nor a column of the caller's choice, so that the
        caller learns nothing of rows from the time that it takes to find those that meet it."""
        is_unary = self.operator in (IS_EMPTY, IS_GIVEN)
        return is_unary and self.column in (PARENT, EVENT_NAMES)

    def admits_file(self, file: Mapping[str, Any]) -> bool:
        """Returns whether a file may contain a value that meets the condition, according to the
        file's statistics in Delta's log."""
        low, high = file.get(f"min.{self.column}"), file.get(f"max.{self.column}")
        if self.operator == IS_EMPTY:
            nulls = file.get(f"null_count.{self.column}")
            return nulls != 0 or low is None or (bool(self.values) and low == "")
        if self.operator == IS_GIVEN:
            return True
        return self.admits(low, high)

    def admits(self, low: Any, high: Any) -> bool:
        """Returns whether a file may contain a value that meets the condition, if its values lie
        between ``low`` and ``high``. None means that this end is unknown. Delta's statistics cut
        long texts, so ``high`` may be only the beginning of the greatest value."""
        if low is None or high is None:
            return True
        return any(self._admits(value, low, high) for value in self.values)

    def _admits(self, value: Any, low: Any, high: Any) -> bool:
        if isinstance(value, datetime):
            # Differences are compared: adding to the first or last possible time would overflow.
            reaches = value - high <= _PRECISION
            begins = low - value <= _PRECISION
        else:
            reaches = high >= value or value.startswith(high)
            begins = low <= value
        if self.operator == "=":
            return bool(reaches and begins)
        return bool(reaches if self.operator.startswith(">") else begins)

    def condition(self) -> str:
        """Returns the bound as an SQL condition for DuckDB."""
        if self.operator == IS_EMPTY:
            texts = [f" OR {self.column} = ''" for _ in self.values]
            return f"({self.column} IS NULL{''.join(texts)})"
        if self.operator == IS_GIVEN:
            return f"({self.column} IS NOT NULL)"
        values = [
            f"{quoted(value.isoformat())}::TIMESTAMPTZ"
            if isinstance(value, datetime)
            else quoted(value)
            for value in self.values
        ]
        return "(" + " OR ".join(f"{self.column} {self.operator} {value}" for value in values) + ")"


Bounds = Sequence[Sequence[ColumnBound]]
"""Alternatives, one for each place in the statement that names the table. A row is needed if it
fulfils all bounds of one alternative. An empty alternative, or no alternative, means all rows."""


def fixed_bounds(bounds: Bounds) -> Bounds:
    """Returns those of some bounds that are fixed (``ColumnBound.is_fixed``). A row that meets all
    bounds of an alternative meets these, too."""
    return [[bound for bound in each if bound.is_fixed] for each in bounds]


def may_hold(file: Mapping[str, Any], bounds: Bounds) -> bool:
    """Returns whether a query may need a file, according to the file's statistics in Delta's log.
    ``bounds`` has one list for each place where the query names the table. The file is needed if
    its rows may meet all bounds of one of these lists."""
    return not bounds or any(all(bound.admits_file(file) for bound in each) for each in bounds)


def partition_may_hold(table: Table, partition: str | None, bounds: Bounds) -> bool:
    """Returns whether a SQL query may need a partition of a system table, according to the
    partition's day or month. ``bounds`` are as in :func:`may_hold`."""
    if partition is None:
        return True
    column, form = table.time, table.time_format
    coarse = [
        [
            bound._replace(values=tuple(value.strftime(form) for value in bound.values))
            for bound in each
            if bound.column == column and all(value.year >= _FIRST_YEAR for value in bound.values)
        ]
        for each in bounds
    ]
    return not coarse or any(
        all(bound.admits(partition, partition) for bound in each) for each in coarse
    )


def sql_condition(bounds: Bounds) -> str:
    """Returns an SQL condition for DuckDB that is true for the rows that meet all bounds of at
    least one of the lists in ``bounds``; empty if all rows are needed."""
    if not bounds or not all(bounds):
        return ""
    return " OR ".join(
        "(" + " AND ".join(bound.condition() for bound in each) + ")" for each in bounds
    )
