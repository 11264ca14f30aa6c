"""The views over system tables that a query may name.

A view exists only in the process that runs a query, over the rows that the caller may read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from mltables import (
    databricks_usage_views,
    gateway_usage_view,
    otel_spans_view,
    request_costs_view,
    served_entities_view,
    trace_metadata_columns,
    trace_view,
)
from mltables.table_columns import Table
from mltables.table_definitions import ASSESSMENTS, OF_TRACES, SPANS, TRACES


class View(NamedTuple):
    """The definition of a view that an SQL query can name: its columns, and how it is computed from
    one or more tables."""

    columns: Mapping[str, str]
    """The columns of the view, in order: by name, their types in DuckDB."""
    tables: tuple[Table, ...]
    bounded: frozenset[str]
    """Columns of the view that all of its tables have: a bound on one of them bounds each table."""
    tables_read: Callable[[Collection[str]], Mapping[str, frozenset[str]]]
    """Returns the tables that the view reads for some of its columns, each with the columns that it
    needs."""
    definition: Callable[[str, Collection[str]], str]
    """Returns the view with some of its columns as a query over the tables in a schema."""
    renamed: Mapping[str, str] = MappingProxyType({})
    """For bounded columns that have another name in the tables: that name, by the name in the
    view."""
    hidden: frozenset[str] = frozenset()
    """Columns that no statement can name. They are read in place of lookups in maps, and of the
    lengths of texts."""
    reads_roots: Callable[[Collection[str]], bool] = lambda _: False
    """Returns whether the view reads only root spans of the table ``spans`` for some of its
    columns."""
    left_to: Mapping[str, str] = MappingProxyType({})
    """Columns that Databricks' table of this name lacks, each with a view that has it: in a query
    of both views, the name without a table means the other view's column."""


def _usage(
    view: databricks_usage_views.UsageView, left_to: Mapping[str, str] = MappingProxyType({})
) -> View:
    return View(
        view.columns,
        gateway_usage_view.TABLES,
        gateway_usage_view.BOUNDED,
        view.tables_read,
        view.definition,
        view.renamed,
        left_to=left_to,
    )


VIEWS: Final[Mapping[str, View]] = {
    trace_view.NAME: View(
        trace_view.COLUMNS,
        OF_TRACES,
        trace_view.BOUNDED,
        trace_view.tables_read,
        trace_view.definition,
        hidden=trace_view.HIDDEN,
        reads_roots=trace_view.reads_roots,
    ),
    trace_view.METADATA_NAME: View(
        trace_view.METADATA_COLUMNS,
        (TRACES, ASSESSMENTS),
        trace_view.BOUNDED & trace_view.METADATA_COLUMNS.keys(),
        trace_view.tables_read,
        trace_view.metadata_definition,
        hidden=frozenset(trace_metadata_columns.VIEWED),
    ),
    otel_spans_view.NAME: View(
        otel_spans_view.COLUMNS,
        (SPANS,),
        otel_spans_view.BOUNDED,
        otel_spans_view.tables_read,
        otel_spans_view.definition,
    ),
    gateway_usage_view.NAME: View(
        gateway_usage_view.COLUMNS,
        gateway_usage_view.TABLES,
        gateway_usage_view.BOUNDED,
        gateway_usage_view.tables_read,
        gateway_usage_view.definition,
    ),
    request_costs_view.NAME: View(
        request_costs_view.COLUMNS,
        request_costs_view.TABLES,
        request_costs_view.BOUNDED,
        request_costs_view.tables_read,
        request_costs_view.definition,
    ),
    "ai_gateway_usage": _usage(databricks_usage_views.USAGE),
    "serving_endpoint_usage": _usage(
        databricks_usage_views.ENDPOINT_USAGE, {"endpoint_name": served_entities_view.NAME}
    ),
    served_entities_view.NAME: View(
        served_entities_view.COLUMNS,
        served_entities_view.TABLES,
        frozenset(),
        served_entities_view.tables_read,
        served_entities_view.definition,
    ),
}
"""All views, by name."""
