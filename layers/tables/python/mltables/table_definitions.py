"""Defines the system tables: columns, types, Delta properties, and how their files are written."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from deltalake import (
    BloomFilterProperties,
    ColumnProperties,
    DeltaTable,
    Field,
    Schema,
    WriterProperties,
)
from deltalake.exceptions import TableNotFoundError
from deltalake.schema import ArrayType, PrimitiveType, StructType

from mltables import span_attribute_columns, trace_metadata_columns
from mltables.entity_tables import OF_ENTITIES
from mltables.lake import Lake
from mltables.table_columns import (
    DOUBLE,
    MAP_OF_TEXTS,
    STRING,
    TEXT,
    TEXTS,
    Table,
    boolean_column,
    double_column,
    integer_column,
    list_column,
    structs_column,
    text_column,
    texts_column,
    time_column,
)

WRITER: Final = "publisher"
"""The application id under which Delta numbers the publisher's transactions."""

ROW_GROUP: Final = 65_536
FILE_BYTES: Final = 64 << 20
"""Target size of files that compaction writes."""
CHECKPOINT_VERSIONS: Final = 50
"""Each version of a table whose number is a multiple of this gets a checkpoint, so that a reader
reads at most so many entries of the log."""
KEPT_HOURS: Final = 24
"""Files of a table stay this long after they were replaced. So a reader that opened a table at most
this long ago still finds its files."""


AGGREGATE: Final = (
    "STRUCT(metric_name VARCHAR, latest_value DOUBLE, min_value DOUBLE, max_value DOUBLE)[]"
)
# Members of lists and structs have to be nullable in Delta.
_AGGREGATE = ArrayType(
    StructType(
        [
            Field("metric_name", TEXT),
            Field("latest_value", DOUBLE),
            Field("min_value", DOUBLE),
            Field("max_value", DOUBLE),
        ]
    ),
    contains_null=True,
)


EXPERIMENTS: Final = Table(
    "experiments_latest",
    (
        text_column("account_id"),
        time_column("update_time"),
        time_column("delete_time", nullable=True),
        text_column("experiment_id"),
        text_column("workspace_id"),
        text_column("name"),
        time_column("create_time"),
    ),
    None,
    "experiment_id",
    "experiment_id",
)
RUNS: Final = Table(
    "runs_latest",
    (
        text_column("account_id"),
        time_column("update_time"),
        time_column("delete_time", nullable=True),
        text_column("workspace_id"),
        text_column("run_id"),
        text_column("experiment_id"),
        text_column("created_by", nullable=True),
        time_column("start_time"),
        time_column("end_time", nullable=True),
        text_column("run_name"),
        text_column("status"),
        texts_column("params"),
        texts_column("tags"),
        ("aggregated_metrics", AGGREGATE, _AGGREGATE, False),
    ),
    "start_month",
    "run_id,experiment_id,start_time,workspace_id",
    "run_id",
    "run_id",
    "start_time",
)
HISTORY: Final = Table(
    "run_metrics_history",
    (
        text_column("account_id"),
        time_column("insert_time"),
        text_column("record_id"),
        text_column("workspace_id"),
        text_column("experiment_id"),
        text_column("run_id"),
        text_column("metric_name"),
        time_column("metric_time"),
        integer_column("metric_step"),
        double_column("metric_value"),
    ),
    "insert_date",
    "insert_time,experiment_id,run_id,workspace_id",
    order="experiment_id, run_id, metric_name, metric_step, metric_time",
    time="insert_time",
)
TRACES: Final = Table(
    "traces",
    (
        text_column("account_id"),
        time_column("update_time"),
        text_column("workspace_id"),
        text_column("experiment_id"),
        text_column("trace_id"),
        text_column("client_request_id", nullable=True),
        text_column("trace_name", nullable=True),
        time_column("request_time"),
        integer_column("execution_duration_ms", nullable=True),
        text_column("state"),
        text_column("user_id", nullable=True),
        text_column("session_id", nullable=True),
        text_column("source_run_id", nullable=True),
        text_column("request_preview", nullable=True),
        text_column("response_preview", nullable=True),
        integer_column("input_tokens", nullable=True),
        integer_column("output_tokens", nullable=True),
        integer_column("total_tokens", nullable=True),
        integer_column("cache_read_input_tokens", nullable=True),
        integer_column("cache_creation_input_tokens", nullable=True),
        double_column("input_cost", nullable=True),
        double_column("output_cost", nullable=True),
        double_column("total_cost", nullable=True),
        list_column("linked_prompts"),
        texts_column("trace_metadata"),
        texts_column("tags"),
    ),
    "request_date",
    "request_time,experiment_id,trace_id,workspace_id",
    "experiment_id, trace_id",
    "experiment_id, request_time, trace_id",
    "request_time",
    trace_metadata_columns.DERIVED,
    derived_from=(trace_metadata_columns.MAP,),
    derived_view=trace_metadata_columns.VIEW,
)
ASSESSMENTS: Final = Table(
    "assessments",
    (
        text_column("account_id"),
        text_column("workspace_id"),
        text_column("experiment_id"),
        text_column("trace_id"),
        time_column("request_time"),
        text_column("assessment_id"),
        text_column("assessment_name"),
        text_column("assessment_type"),
        text_column("value", nullable=True),
        double_column("numeric_value", nullable=True),
        text_column("error_code", nullable=True),
        text_column("error_message", nullable=True),
        text_column("source_type"),
        text_column("source_id", nullable=True),
        time_column("create_time"),
        time_column("last_update_time"),
        text_column("run_id", nullable=True),
        text_column("span_id", nullable=True),
        text_column("rationale", nullable=True),
        text_column("overrides", nullable=True),
        boolean_column("valid"),
        texts_column("metadata"),
    ),
    "request_date",
    "request_time,experiment_id,trace_id,workspace_id",
    "experiment_id, trace_id, assessment_id",
    "experiment_id, assessment_name, request_time, trace_id, assessment_id",
    "request_time",
)
SPANS: Final = Table(
    "spans",
    (
        text_column("account_id"),
        text_column("workspace_id"),
        text_column("experiment_id"),
        text_column("trace_id"),
        time_column("request_time"),
        text_column("span_id"),
        text_column("parent_span_id", nullable=True),
        text_column("name"),
        text_column("kind"),
        time_column("time"),
        integer_column("start_time_unix_nano"),
        integer_column("end_time_unix_nano", nullable=True),
        texts_column("attributes"),
        structs_column(
            "events",
            {
                "time_unix_nano": ("BIGINT", PrimitiveType("long")),
                "name": (STRING, TEXT),
                "attributes": (TEXTS, MAP_OF_TEXTS),
            },
        ),
        structs_column(
            "links",
            {
                "trace_id": (STRING, TEXT),
                "span_id": (STRING, TEXT),
                "attributes": (TEXTS, MAP_OF_TEXTS),
            },
        ),
        (
            "status",
            "STRUCT(message VARCHAR, code VARCHAR)",
            StructType([Field("message", TEXT), Field("code", TEXT)]),
            False,
        ),
    ),
    "request_date",
    "request_time,experiment_id,trace_id,workspace_id,parent_span_id",
    "experiment_id, trace_id, span_id",
    "experiment_id, request_time, trace_id, start_time_unix_nano, span_id",
    "request_time",
    span_attribute_columns.DERIVED,
    "parent_span_id IS NULL",
    span_attribute_columns.DERIVED_FROM,
    span_attribute_columns.VIEW,
    "V2",
)
AUDIT: Final = Table(
    "audit_log",
    (
        text_column("account_id"),
        time_column("event_time"),
        time_column("insert_time"),
        text_column("record_id"),
        text_column("workspace_id"),
        text_column("user_name", nullable=True),
        text_column("user_id", nullable=True),
        text_column("login"),
        text_column("key_id", nullable=True),
        boolean_column("is_admin"),
        text_column("address"),
        text_column("rpc"),
        text_column("method"),
        integer_column("http_status"),
        text_column("outcome"),
        text_column("entity"),
        integer_column("sequence"),
        text_column("previous_hash"),
        text_column("hash"),
        double_column("milliseconds", nullable=True),
        double_column("read_units", nullable=True),
        double_column("write_units", nullable=True),
        integer_column("round_trips", nullable=True),
        integer_column("memory_mb", nullable=True),
    ),
    "insert_date",
    "insert_time,event_time,workspace_id",
    "record_id",
    "sequence",
    "insert_time",
)
OF_TRACES: Final = (
    TRACES,
    ASSESSMENTS,
    SPANS,
)
"""The tables that a step of the publisher for traces writes, in this order."""
TABLES: Final = (
    HISTORY,
    RUNS,
    EXPERIMENTS,
    *OF_TRACES,
    *OF_ENTITIES,
    AUDIT,
)
"""All system tables. A step of the publisher for runs writes the experiments last."""
TABLES_BY_NAME: Final = {table.name: table for table in TABLES}


def writer_properties(table: Table) -> WriterProperties:
    """Returns the writer properties that **every** compaction and sort must pass to delta-rs,
    because Delta does not store them with the table. For the metric history they turn off the
    statistics of ``metric_value``, because these would make readers skip rows with NaN. (DuckDB
    writes no statistics for a column that contains NaN.)"""
    columns = {}
    if table is HISTORY:
        columns["metric_value"] = ColumnProperties(statistics_enabled="NONE")
        columns["record_id"] = ColumnProperties(dictionary_enabled=False)
        columns["run_id"] = ColumnProperties(
            bloom_filter_properties=BloomFilterProperties(
                set_bloom_filter_enabled=True, fpp=0.01, ndv=2000
            )
        )
    return WriterProperties(
        compression="ZSTD", max_row_group_size=ROW_GROUP, column_properties=columns or None
    )


def delta_schema(table: Table) -> Schema:
    """Returns the schema of a system table in Delta's types, with the partition's column."""
    fields = [Field(name, kind, nullable=nullable) for name, _, kind, nullable in table.columns]
    if table.partition:
        fields.append(Field(table.partition, TEXT, nullable=False))
    return Schema(fields)


def open_if_exists(lake: Lake, table: Table) -> DeltaTable | None:
    """Opens the current version of a system table (a Delta table). Returns None if the table does
    not exist, because nothing was published to it yet."""
    try:
        return DeltaTable(lake.uri(table.name), storage_options=lake.options)
    except TableNotFoundError:
        return None


def open_or_create(
    lake: Lake,
    table: Table,
    properties: Mapping[str, str] = MappingProxyType({}),
    *,
    may_be_behind: bool = False,
) -> DeltaTable:
    """Opens a Delta table for a writer and creates it if it does not exist.

    Args:
        properties: our own properties, which a new table gets in addition to Delta's.
        may_be_behind: see ``Lake.open``.
    """
    while (delta := lake.open(table.name, may_be_behind=may_be_behind)) is None:
        DeltaTable.create(
            lake.uri(table.name),
            schema=delta_schema(table),
            mode="ignore",
            partition_by=[table.partition] if table.partition else None,
            name=table.name,
            configuration={
                "delta.dataSkippingStatsColumns": table.skipping,
                "delta.checkpointInterval": str(CHECKPOINT_VERSIONS),
                "delta.logRetentionDuration": "interval 1 days",
                "delta.deletedFileRetentionDuration": "interval 1 days",
                **properties,
            },
            raise_if_key_not_exists=not properties,
            storage_options=lake.options,
        )
    return delta
