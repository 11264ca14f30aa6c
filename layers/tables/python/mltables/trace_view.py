"""The views ``trace_unified``, one row for each trace with its spans and assessments, and
``trace_metadata``, ids, tags, metadata and assessments of each trace, in the columns of Databricks'
views of these names.

A query gets a view with only the columns that it names, so ``spans`` and ``assessments`` are read
only if it needs them. Databricks has no ``experiment_id`` and ``workspace_id``. What MLflow does
not store is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from mlcore import reserved_tags
from mltables.span_attribute_columns import ROOT_COLUMNS
from mltables.table_definitions import ASSESSMENTS, SPANS, TRACES
from mltables.trace_metadata_columns import VIEWED

NAME: Final = "trace_unified"
METADATA_NAME: Final = "trace_metadata"

_KINDS: Final = {name: kind for name, kind, *_ in SPANS.columns}
_MAP: Final = "MAP(VARCHAR, VARCHAR)"
_TIME: Final = "TIMESTAMP WITH TIME ZONE"
ABSENT: Final[Mapping[str, str]] = {
    "trace_state": "VARCHAR",
    "flags": "INTEGER",
    "dropped_attributes_count": "INTEGER",
    "dropped_events_count": "INTEGER",
    "dropped_links_count": "INTEGER",
    "resource": f"STRUCT(attributes {_MAP}, dropped_attributes_count INTEGER)",
    "resource_schema_url": "VARCHAR",
    "instrumentation_scope": (
        f'STRUCT("name" VARCHAR, "version" VARCHAR, attributes {_MAP}, '
        "dropped_attributes_count INTEGER)"
    ),
    "span_schema_url": "VARCHAR",
}
"""The fields of a span in Databricks that MLflow does not store, with their types in DuckDB."""
_SPAN: Final = (
    *("trace_id", "span_id", "trace_state", "parent_span_id", "flags", "name", "kind"),
    *("start_time_unix_nano", "end_time_unix_nano", "attributes", "dropped_attributes_count"),
    *("events", "dropped_events_count", "links", "dropped_links_count", "status", "resource"),
    *("resource_schema_url", "instrumentation_scope", "span_schema_url"),
)
SPAN: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    name: (ABSENT[name], f"CAST(NULL AS {ABSENT[name]})", ())
    if name in ABSENT
    else (_KINDS[name], name, (name,))
    for name in _SPAN
}
"""The fields of a span in the list ``spans``, in order: the type, the expression and the columns
that it reads from the table ``spans``."""
_VALUE: Final = ("assessment_type", "value")
_TEXT: Final = (
    'CASE WHEN starts_with("value", \'"\') THEN json_extract_string("value", \'$\') '
    "ELSE nullif(\"value\", 'null') END"
)
"""A value as Databricks' view has it: a text without its quotes, anything else as JSON."""
_IS_SERIALIZED: Final = (
    "starts_with(\"value\", '{') OR starts_with(\"value\", '[') OR \"value\" = 'null'"
)
"""Whether a value is neither a text, nor a number, nor a boolean. MLflow serializes such values of
expectations, and Databricks has them in a field of their own."""
_ERROR: Final = "STRUCT(error_code VARCHAR, error_message VARCHAR, stack_trace VARCHAR)"
_SERIALIZED: Final = 'STRUCT(serialization_format VARCHAR, "value" VARCHAR, stack_trace VARCHAR)'
ASSESSMENT: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "assessment_id": ("VARCHAR", "assessment_id", ("assessment_id",)),
    "trace_id": ("VARCHAR", "trace_id", ("trace_id",)),
    "assessment_name": ("VARCHAR", "assessment_name", ("assessment_name",)),
    "source": (
        "STRUCT(source_id VARCHAR, source_type VARCHAR)",
        "{'source_id': source_id, 'source_type': source_type}",
        ("source_id", "source_type"),
    ),
    "create_time": (_TIME, "create_time", ("create_time",)),
    "last_update_time": (_TIME, "last_update_time", ("last_update_time",)),
    "expectation": (
        f'STRUCT("value" VARCHAR, serialized_value {_SERIALIZED})',
        "CASE WHEN assessment_type = 'expectation' THEN {"
        f"'value': CASE WHEN NOT ({_IS_SERIALIZED}) THEN {_TEXT} END, "
        f"'serialized_value': CASE WHEN {_IS_SERIALIZED} THEN {{"
        "'serialization_format': 'JSON_FORMAT', 'value': \"value\", "
        "'stack_trace': CAST(NULL AS VARCHAR)} END} END",
        _VALUE,
    ),
    "feedback": (
        f'STRUCT("value" VARCHAR, error {_ERROR})',
        f"CASE WHEN assessment_type = 'feedback' THEN {{'value': {_TEXT}, "
        "'error': CASE WHEN error_code IS NOT NULL OR error_message IS NOT NULL "
        "THEN {'error_code': error_code, 'error_message': error_message, "
        "'stack_trace': CAST(NULL AS VARCHAR)} END} END",
        (*_VALUE, "error_code", "error_message"),
    ),
    "rationale": ("VARCHAR", "rationale", ("rationale",)),
    "metadata": (_MAP, "metadata", ("metadata",)),
    "span_id": ("VARCHAR", "span_id", ("span_id",)),
    "overrides": ("VARCHAR", "overrides", ("overrides",)),
    "valid": ("VARCHAR", "CAST(valid AS VARCHAR)", ("valid",)),
}
"""The fields of an assessment in the list ``assessments``, in order: the type, the expression and
the columns that it reads from the table ``assessments``."""
_OF_TRACE: Final = {
    "workspace_id": "VARCHAR",
    "experiment_id": "VARCHAR",
    "trace_id": "VARCHAR",
    "client_request_id": "VARCHAR",
    "request_time": _TIME,
    "state": "VARCHAR",
    "execution_duration_ms": "DECIMAL(30,9)",
    "request": "VARCHAR",
    "response": "VARCHAR",
    "trace_metadata": _MAP,
    "tags": _MAP,
}
COLUMNS: Final[Mapping[str, str]] = {
    **_OF_TRACE,
    "spans": f"STRUCT({', '.join(f'{n} {kind}' for n, (kind, *_) in SPAN.items())})[]",
    "assessments": f"STRUCT({', '.join(f'{n} {kind}' for n, (kind, *_) in ASSESSMENT.items())})[]",
}
"""The columns of ``trace_unified`` and their types in DuckDB, in order."""
METADATA_COLUMNS: Final[Mapping[str, str]] = {
    name: COLUMNS[name]
    for name in (
        *("workspace_id", "experiment_id", "trace_id", "client_request_id", "tags"),
        *("trace_metadata", "assessments"),
    )
}
"""The columns of ``trace_metadata`` and their types in DuckDB, in order."""
_LENGTH: Final = "CAST(length({}) AS INTEGER)"
LENGTH: Final = "inner_length_of_"
"""The prefix of the columns in ``LENGTHS``. No statement can name them."""
LENGTHS: Final[Mapping[str, str]] = {f"{LENGTH}{name}": name for name in ("request", "response")}
"""The columns of ``trace_unified`` with the length of a text: its column, by name."""
HIDDEN: Final = frozenset((*VIEWED, *LENGTHS))
"""The columns of ``trace_unified`` that no statement can name."""
BOUNDED: Final = frozenset(("request_time", "trace_id", "experiment_id"))
"""Columns of ``trace_unified`` that ``traces``, ``spans`` and ``assessments`` have, too: a bound on
one of them bounds these tables."""

_KEY: Final = frozenset(("experiment_id", "trace_id"))
_CONTENT: Final = {
    "request": (reserved_tags.SPAN_INPUTS, "request_preview"),
    "response": (reserved_tags.SPAN_OUTPUTS, "response_preview"),
}
"""For ``request`` and ``response``: the attribute of the root span that the column shows, and the
column of ``traces`` that replaces a missing attribute."""


def tables_read(columns: Collection[str]) -> Mapping[str, frozenset[str]]:
    """Returns the system tables from which these columns of the view ``trace_unified`` are
    computed, each with the columns to provide: those that are read, of ``assessments`` also
    others."""
    contents = {LENGTHS.get(name, name) for name in columns} & _CONTENT.keys()
    own = set(columns) - {*_CONTENT, *LENGTHS, "spans", "assessments"}
    reads = {TRACES.name: _KEY | {VIEWED.get(name, name) for name in own}}
    for name in contents:
        reads[TRACES.name] |= {_CONTENT[name][1]}
        reads[SPANS.name] = _KEY | {
            *("span_id", "parent_span_id", "start_time_unix_nano"),
            "attributes" if "spans" in columns else ROOT_COLUMNS[_CONTENT[name][0]],
            *reads.get(SPANS.name, ()),
        }
    if "spans" in columns:
        reads[SPANS.name] = _KEY | {name for *_, read in SPAN.values() for name in read}
    if "assessments" in columns:
        reads[ASSESSMENTS.name] = frozenset(
            name for name, *_ in ASSESSMENTS.columns if name not in {"account_id", "request_time"}
        )
    return {table: frozenset(names) for table, names in reads.items()}


def reads_roots(columns: Collection[str]) -> bool:
    """Returns whether these columns of the view ``trace_unified`` are computed from no other spans
    than root spans."""
    return "spans" not in columns


def definition(schema: str, columns: Collection[str]) -> str:
    """Returns the query for DuckDB that defines the view ``trace_unified``: it has the wanted
    ``columns``, and reads the tables in ``schema``."""
    return _definition(schema, [name for name in (*COLUMNS, *VIEWED, *LENGTHS) if name in columns])


def metadata_definition(schema: str, columns: Collection[str]) -> str:
    """Returns the query for DuckDB that defines the view ``trace_metadata``: it has the wanted
    ``columns``, and reads the tables in ``schema``."""
    shown = (*METADATA_COLUMNS, *VIEWED)
    return _definition(schema, [name for name in shown if name in columns])


def _definition(schema: str, wanted: list[str]) -> str:
    named = wanted or ["trace_id"]
    reads = tables_read(named)
    joins = ""
    if SPANS.name in reads:
        joins += f" LEFT JOIN ({_spans(schema, named)}) s USING (experiment_id, trace_id)"
    if ASSESSMENTS.name in reads:
        joins += f" LEFT JOIN ({_assessments(schema)}) a USING (experiment_id, trace_id)"
    selected = ", ".join(f"{_column(name)} AS {name}" for name in named)
    traces = TRACES.name if VIEWED.keys().isdisjoint(named) else TRACES.derived_view
    return f"SELECT {selected} FROM {schema}.{traces} t{joins}"


def _column(name: str) -> str:
    if name in VIEWED:
        return f"t.{VIEWED[name]}"
    if name in _CONTENT:
        return f"coalesce(s.{name}, t.{_CONTENT[name][1]})"
    if name in LENGTHS:
        return f"coalesce(s.{name}, {_LENGTH.format(f't.{_CONTENT[LENGTHS[name]][1]}')})"
    if name in ("spans", "assessments"):
        return f"coalesce({name[0]}.{name}, [])"
    return f"CAST(t.{name} AS {COLUMNS[name]})"


def _spans(schema: str, named: Collection[str]) -> str:
    if "spans" not in named:
        columns = _contents(named, lambda attribute: ROOT_COLUMNS[attribute])
        return _roots(f"{schema}.{SPANS.derived_view}", columns)
    packed = ", ".join(f"'{name}': {sql}" for name, (_, sql, _) in SPAN.items())
    lists = [f"list({{{packed}}} ORDER BY start_time_unix_nano, span_id) AS spans"]
    contents = _contents(named, lambda attribute: f"attributes['{attribute}']")
    firsts = {name: _first(value) for name, value in contents.items()}
    lists += [
        f"{first} FILTER (parent_span_id IS NULL) AS {name}" for name, first in firsts.items()
    ]
    return (
        f"SELECT experiment_id, trace_id, {', '.join(lists)} FROM {schema}.{SPANS.name} "
        "GROUP BY experiment_id, trace_id"
    )


def _contents(named: Collection[str], value_of: Callable[[str], str]) -> Mapping[str, str]:
    """Returns those of the wanted columns that are texts of the root span or their lengths, each
    with its SQL expression. ``value_of`` returns that of an attribute."""
    texts = {name: value_of(attribute) for name, (attribute, _) in _CONTENT.items()}
    lengths = {name: _LENGTH.format(texts[text]) for name, text in LENGTHS.items()}
    return {name: value for name, value in (texts | lengths).items() if name in named}


def _roots(spans: str, contents: Mapping[str, str]) -> str:
    """Returns a query for texts of the first root span of each trace, or their lengths.
    ``contents`` has the SQL expression for each column of the query.

    Nearly all traces have one root span. Its attributes need no aggregate, which would keep the
    texts of all traces in memory.
    """
    values = ", ".join(f"{value} AS {name}" for name, value in contents.items())
    firsts = ", ".join(f"{_first(value)} AS {name}" for name, value in contents.items())
    key, is_root = "experiment_id, trace_id", "parent_span_id IS NULL"
    number = f"hash({key})"
    # Hashes take less memory than ids. A trace with the hash of another is read with an aggregate,
    # too.
    return (
        f"WITH several AS MATERIALIZED (SELECT {number} AS number FROM {spans} WHERE {is_root} "
        f"GROUP BY {number} HAVING count(*) > 1) "
        f"SELECT {key}, {values} FROM {spans} ANTI JOIN several ON {number} = number "
        f"WHERE {is_root} UNION ALL SELECT {key}, {firsts} FROM {spans} "
        f"SEMI JOIN several ON {number} = number WHERE {is_root} GROUP BY {key}"
    )


def _first(value: str) -> str:
    """Returns an aggregate for a value of the first span of each trace. It keeps one pair in
    memory for each trace; an ordered aggregate would keep all rows."""
    return f"arg_min_null({value}, (start_time_unix_nano, span_id))"


def _assessments(schema: str) -> str:
    packed = ", ".join(f"'{name}': {sql}" for name, (_, sql, _) in ASSESSMENT.items())
    return (
        f"SELECT experiment_id, trace_id, list({{{packed}}} ORDER BY create_time, assessment_id) "
        f"AS assessments FROM {schema}.{ASSESSMENTS.name} GROUP BY experiment_id, trace_id"
    )
