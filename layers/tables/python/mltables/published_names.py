"""Names under which Databricks publishes its SQL tables of traces and of model calls.

Databricks makes tables and views of traces in a schema that the user chooses:
``<catalog>.<schema>.mlflow_experiment_trace_unified``, or with a prefix in place of
``mlflow_experiment``. There is one set of traces here, so catalog, schema and prefix select
nothing: all of these names mean the same view.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from sqlglot import exp

from mltables import otel_spans_view, served_entities_view, trace_view
from mltables.column_pruning import needs_all_columns
from mltables.dialect.map_lookups import identifiers
from mltables.table_definitions import SPANS
from mltables.views import VIEWS

SYSTEM_NAMES: Final[Mapping[tuple[str, str], str]] = {
    ("ai_gateway", "usage"): "ai_gateway_usage",
    ("serving", "endpoint_usage"): "serving_endpoint_usage",
    ("serving", "served_entities"): served_entities_view.NAME,
}
"""Schemas and names of Databricks' system tables that are views here."""

_ENDINGS: Final[Mapping[str, str]] = {
    "_trace_unified": trace_view.NAME,
    "_trace_metadata": trace_view.METADATA_NAME,
    "_otel_spans": otel_spans_view.NAME,
}
_WITH_MORE_COLUMNS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    otel_spans_view.NAME: (SPANS.name, frozenset(name for name, *_ in SPANS.columns)),
    trace_view.METADATA_NAME: (trace_view.NAME, frozenset(trace_view.COLUMNS)),
}
"""By view: a table or view with the same rows that is faster to read, and its columns."""


def published_view(catalog: str, schema: str, name: str) -> str | None:
    """Returns this server's SQL view for which a Databricks name of a table (in lower case) stands;
    None for other names."""
    if catalog in ("", "system") and (schema, name) in SYSTEM_NAMES:
        return SYSTEM_NAMES[schema, name]
    return next((view for ending, view in _ENDINGS.items() if name.endswith(ending)), None)


class PublishedSources:
    """Chooses for each view that an SQL query names what is read: the view, or a faster table or
    view with the same rows."""

    def __init__(self, query: exp.Query) -> None:
        self._query = query

    @cached_property
    def _named(self) -> frozenset[str] | None:
        """The names of the columns that the query may use; None if it may use all."""
        if needs_all_columns(self._query):
            return None
        words = identifiers(self._query)
        return frozenset(word.name.lower() for word in words if not _is_of_table(word))

    def fastest(self, view: str) -> str:
        """Returns what to read in place of ``view``: a table or view that has the same rows and is
        faster to read, if there is one and the query names no column that only one of the two has;
        otherwise ``view``."""
        source, columns = _WITH_MORE_COLUMNS.get(view, (view, frozenset()))
        if source == view or self._named is None:
            return view
        return view if self._named & (columns ^ VIEWS[view].columns.keys()) else source


def _is_of_table(word: exp.Identifier) -> bool:
    return isinstance(word.parent, exp.Table)
