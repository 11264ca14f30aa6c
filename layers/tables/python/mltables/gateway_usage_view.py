"""The view ``gateway_usage``: one row for each call of an endpoint of the AI gateway.

The gateway records a call as a trace in the experiment of its endpoint, if the endpoint tracks its
usage. So the view has no rows of its own: it shows the rows of ``traces`` that the gateway wrote,
each with the last model that was called, from its ``spans``. A query gets the view with only the
columns that it names, so ``spans`` is read only if it needs them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from mlcore import reserved_tags
from mltables.span_attribute_columns import COLUMNS as ATTRIBUTE_COLUMNS
from mltables.span_attribute_columns import VIEW as SPANS_VIEW
from mltables.table_definitions import SPANS, TRACES
from mltables.trace_metadata_columns import COLUMNS as METADATA_COLUMNS
from mltables.trace_metadata_columns import VIEW as TRACES_VIEW

NAME: Final = "gateway_usage"

_NAMED: Final = "gateway/"
"""The prefix of the name of a call's trace; the name of the endpoint follows it."""
_ENDPOINT_ID: Final = METADATA_COLUMNS[reserved_tags.GATEWAY_ENDPOINT]
_IS_CALL: Final = f"t.{_ENDPOINT_ID} IS NOT NULL"
_FAILED: Final = "(parent_span_id IS NULL AND status.code = 'STATUS_CODE_ERROR')"
_ERROR: Final = f"any_value(status.message) FILTER {_FAILED}"
_COUNTS: Final = (
    *("input_tokens", "output_tokens", "total_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
)
_COSTS: Final = ("input_cost", "output_cost", "total_cost")
_KINDS: Final = {name: kind for name, kind, *_ in TRACES.columns}

_OF_TRACE: Final[Mapping[str, tuple[str, str, str]]] = {
    **{
        name: (_KINDS[name], f"t.{name}", name)
        for name in ("workspace_id", "experiment_id", "trace_id", "request_time")
    },
    "endpoint_id": ("VARCHAR", f"t.{_ENDPOINT_ID}", _ENDPOINT_ID),
    "endpoint_name": (
        "VARCHAR",
        f"CASE WHEN starts_with(t.trace_name, '{_NAMED}') "
        f"THEN substr(t.trace_name, {len(_NAMED) + 1}) END",
        "trace_name",
    ),
    **{
        name: ("VARCHAR", f"t.{METADATA_COLUMNS[key]}", METADATA_COLUMNS[key])
        for name, key in (
            ("request_type", reserved_tags.GATEWAY_REQUEST_TYPE),
            ("user_name", reserved_tags.GATEWAY_USERNAME),
            ("caller", reserved_tags.GATEWAY_CALLER),
        )
    },
    "outcome": ("VARCHAR", "CASE t.state WHEN 'OK' THEN 'OK' ELSE 'ERROR' END", "state"),
    "latency_ms": ("BIGINT", "t.execution_duration_ms", "execution_duration_ms"),
    **{name: (_KINDS[name], f"t.{name}", name) for name in (*_COUNTS, *_COSTS)},
}
"""The columns of ``gateway_usage`` that come from ``traces``: type in DuckDB, expression, and the
column that the expression reads."""
_PROVIDER: Final = ATTRIBUTE_COLUMNS[reserved_tags.SPAN_PROVIDER]
_MODEL: Final = ATTRIBUTE_COLUMNS[reserved_tags.SPAN_MODEL]
_OF_SPANS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "provider": (
        "VARCHAR",
        f"max_by({_PROVIDER}, (start_time_unix_nano, span_id)) FILTER ({_PROVIDER} IS NOT NULL)",
        (_PROVIDER,),
    ),
    "model": (
        "VARCHAR",
        f"max_by({_MODEL}, (start_time_unix_nano, span_id)) FILTER ({_PROVIDER} IS NOT NULL)",
        (_PROVIDER, _MODEL),
    ),
    "attempts": ("BIGINT", f"count(*) FILTER ({_PROVIDER} IS NOT NULL)", (_PROVIDER,)),
    "error_status": (
        "BIGINT",
        f"TRY_CAST(regexp_extract({_ERROR}, '^[A-Za-z]+: ([0-9]{{3}}): ', 1) AS BIGINT)",
        ("status",),
    ),
    "error_message": ("VARCHAR", _ERROR, ("status",)),
}
"""The columns of ``gateway_usage`` that come from ``spans``, in the same form; the expressions are
aggregates over a trace's spans."""
_ASKED: Final = f"{_PROVIDER} IS NOT NULL"
_NEEDED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("provider", "model"), _ASKED),
    **dict.fromkeys(("error_status", "error_message"), _FAILED),
}
"""The columns from ``spans`` that depend only on some spans: an SQL condition that selects these
spans. The other column, ``attempts``, needs all spans: it is 0 for a trace whose spans are not
attempts, and NULL for a trace without spans."""

COLUMNS: Final[Mapping[str, str]] = {
    **{name: kind for name, (kind, *_) in _OF_TRACE.items()},
    **{name: kind for name, (kind, *_) in _OF_SPANS.items()},
}
"""The columns of ``gateway_usage`` and their types in DuckDB, in order."""
BOUNDED: Final = frozenset(("request_time", "trace_id", "experiment_id"))
"""Columns of ``gateway_usage`` that ``traces`` and ``spans`` have, too: a bound on one of them
bounds both tables."""
TABLES: Final = (TRACES, SPANS)

_KEY: Final = frozenset(("experiment_id", "trace_id"))


def tables_read(columns: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Returns the tables from which these columns of the view ``gateway_usage`` are computed, each
    with the columns that are read of it."""
    of_trace = {_OF_TRACE[name][2] for name in columns if name in _OF_TRACE}
    reads = {TRACES.name: _KEY | {_ENDPOINT_ID} | of_trace}
    of_spans = {read for name in columns if name in _OF_SPANS for read in _OF_SPANS[name][2]}
    if of_spans:
        order = {"span_id", "parent_span_id", "start_time_unix_nano"}
        reads[SPANS.name] = _KEY | order | of_spans
    return reads


def definition(schema: str, columns: Collection[str]) -> str:
    """Returns the query for DuckDB that defines the view ``gateway_usage``: it has the wanted
    ``columns``, and reads the tables in ``schema``."""
    named = [name for name in COLUMNS if name in columns] or ["trace_id"]
    of_spans = [name for name in named if name in _OF_SPANS]
    join = ""
    if of_spans:
        aggregates = ", ".join(f"{_OF_SPANS[name][1]} AS {name}" for name in of_spans)
        join = (
            f" LEFT JOIN (SELECT experiment_id, trace_id, {aggregates} "
            # Without this condition, the spans of all other traces would be read, too.
            f"FROM {schema}.{SPANS_VIEW} SEMI JOIN (SELECT experiment_id, trace_id "
            f"FROM {schema}.{TRACES_VIEW} t WHERE {_IS_CALL}) calls "
            f"USING (experiment_id, trace_id){_where(of_spans)} "
            "GROUP BY experiment_id, trace_id) s USING (experiment_id, trace_id)"
        )
    selected = ", ".join(
        f"s.{name}" if name in _OF_SPANS else f"{_OF_TRACE[name][1]} AS {name}" for name in named
    )
    return f"SELECT {selected} FROM {schema}.{TRACES_VIEW} t{join} WHERE {_IS_CALL}"


def _where(of_spans: Collection[str]) -> str:
    """Returns a WHERE clause that selects the spans on which these columns depend; "" if they
    depend on all spans."""
    if not all(name in _NEEDED for name in of_spans):
        return ""
    return f" WHERE {' OR '.join(dict.fromkeys(_NEEDED[name] for name in of_spans))}"
