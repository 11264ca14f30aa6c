"""The views over system tables that a query may name: ``trace_unified`` and ``gateway_usage``.

A view exists only in the process that runs a query, over the rows that the caller may read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from mltables import gateway_view, trace_view
from mltables.table_columns import Table
from mltables.table_definitions import OF_TRACES


class View(NamedTuple):
    """A view over tables that share the columns in ``bounded``."""

    columns: Mapping[str, str]
    """Types in DuckDB by name, in order."""
    tables: tuple[Table, ...]
    bounded: frozenset[str]
    """A bound on one of these columns of the view bounds all of its tables."""
    tables_read: Callable[[Collection[str]], Mapping[str, frozenset[str]]]
    """Returns the tables, with their columns, that the view needs for some of its columns."""
    definition: Callable[[str, Collection[str]], str]
    """Returns the view with some of its columns as a query over the tables in a schema."""


VIEWS: Final[Mapping[str, View]] = {
    trace_view.NAME: View(
        trace_view.COLUMNS,
        OF_TRACES,
        trace_view.BOUNDED,
        trace_view.tables_read,
        trace_view.definition,
    ),
    gateway_view.NAME: View(
        gateway_view.COLUMNS,
        gateway_view.TABLES,
        gateway_view.BOUNDED,
        gateway_view.tables_read,
        gateway_view.definition,
    ),
}
"""All views, by name."""
