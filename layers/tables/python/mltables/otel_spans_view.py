"""The view ``otel_spans``: the table ``spans`` in the columns of Databricks' tables of spans.

What MLflow does not store of a span is NULL: the resource with the service's name, the
instrumentation scope, the trace state, the flags, the URLs of schemas, and how many attributes,
events and links were dropped. Databricks has no ``experiment_id`` and ``workspace_id``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from mltables.table_columns import STRING
from mltables.table_definitions import SPANS
from mltables.trace_view import ABSENT

NAME: Final = "otel_spans"
BOUNDED: Final = frozenset(("trace_id", "experiment_id"))

_KINDS: Final = {name: kind for name, kind, *_ in SPANS.columns}
_COMPUTED: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "record_id": (STRING, "concat_ws(':', trace_id, span_id)", ("trace_id", "span_id")),
    "date": ("DATE", 'CAST(make_timestamp(epoch_us("time")) AS DATE)', ("time",)),
    "service_name": (STRING, "CAST(NULL AS VARCHAR)", ()),
}
"""Columns of ``otel_spans`` that ``spans`` lacks: the type, the expression and the columns that it
reads."""
_ORDER: Final = (
    *("workspace_id", "experiment_id", "record_id", "time", "date", "service_name", "trace_id"),
    *("span_id", "trace_state", "parent_span_id", "flags", "name", "kind", "start_time_unix_nano"),
    *("end_time_unix_nano", "attributes", "dropped_attributes_count", "events"),
    *("dropped_events_count", "links", "dropped_links_count", "status", "resource"),
    *("resource_schema_url", "instrumentation_scope", "span_schema_url"),
)
COLUMNS: Final[Mapping[str, str]] = {
    name: _COMPUTED[name][0] if name in _COMPUTED else ABSENT.get(name) or _KINDS[name]
    for name in _ORDER
}
"""The columns of ``otel_spans`` and their types in DuckDB, in order."""


def tables_read(columns: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Returns the columns of ``spans`` from which these columns of the view ``otel_spans`` are
    computed: a mapping with this one table."""
    reads = {"trace_id"}
    for name in columns:
        reads |= set(_COMPUTED[name][2]) if name in _COMPUTED else {name} & _KINDS.keys()
    return {SPANS.name: frozenset(reads)}


def definition(schema: str, columns: Collection[str]) -> str:
    """Returns the query for DuckDB that defines the view ``otel_spans``: it has the wanted
    ``columns``, and reads the table ``spans`` in ``schema``."""
    named = [name for name in COLUMNS if name in columns] or ["trace_id"]
    selected = ", ".join(f'{_expression(name)} AS "{name}"' for name in named)
    return f"SELECT {selected} FROM {schema}.{SPANS.name}"


def _expression(name: str) -> str:
    if name in _COMPUTED:
        return _COMPUTED[name][1]
    return f"CAST(NULL AS {ABSENT[name]})" if name in ABSENT else f'"{name}"'
