"""Defines the system tables: columns, types, Delta properties, and how their files are written."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from deltalake import (
    BloomFilterProperties,
    ColumnProperties,
    DeltaTable,
    Field,
    Schema,
    WriterProperties,
)
from deltalake.exceptions import TableNotFoundError
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType

from mltables.lake import Lake

Type = PrimitiveType | MapType | StructType | ArrayType

WRITER: Final = "publisher"
"""The application id under which Delta numbers the publisher's transactions."""

ROW_GROUP: Final = 65_536
FILE_BYTES: Final = 64 << 20
"""Target size of files that compaction writes."""


class Table(NamedTuple):
    """A system table. ``columns`` are the columns that queries see, as (name, type in DuckDB, type
    in Delta, nullable). ``partition`` names one more column, a text, by which files are
    partitioned."""

    name: str
    columns: tuple[tuple[str, str, Type, bool], ...]
    partition: str | None
    skipping: str
    """The columns with statistics in Delta's log, separated by commas. Never a double: statistics
    ignore NaN, so a reader would skip files that hold rows with NaN."""

    @property
    def names(self) -> str:
        """Returns the columns that queries see, separated by commas."""
        return ", ".join(name for name, *_ in self.columns)

    @property
    def stored(self) -> str:
        """Returns all columns, including the partition's, separated by commas."""
        return self.names + (f", {self.partition}" if self.partition else "")

    @property
    def nothing(self) -> str:
        """Returns a FROM source without rows, used while the table has no files."""
        columns = [(name, kind) for name, kind, *_ in self.columns]
        if self.partition:
            columns.append((self.partition, "VARCHAR"))
        empty = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns)
        return f"(SELECT {empty} WHERE false)"


_STRING = "VARCHAR"
_TEXT = PrimitiveType("string")
_DOUBLE = PrimitiveType("double")
_TIME = "TIMESTAMP WITH TIME ZONE"

AGGREGATE: Final = (
    "STRUCT(metric_name VARCHAR, latest_value DOUBLE, min_value DOUBLE, max_value DOUBLE)[]"
)
# Members of lists and structs have to be nullable in Delta.
_AGGREGATE = ArrayType(
    StructType(
        [
            Field("metric_name", _TEXT),
            Field("latest_value", _DOUBLE),
            Field("min_value", _DOUBLE),
            Field("max_value", _DOUBLE),
        ]
    ),
    contains_null=True,
)


def _text(name: str, *, nullable: bool = False) -> tuple[str, str, Type, bool]:
    return (name, _STRING, _TEXT, nullable)


def _time(name: str, *, nullable: bool = False) -> tuple[str, str, Type, bool]:
    return (name, _TIME, PrimitiveType("timestamp"), nullable)


def _integer(name: str, *, nullable: bool = False) -> tuple[str, str, Type, bool]:
    return (name, "BIGINT", PrimitiveType("long"), nullable)


def _double(name: str, *, nullable: bool = False) -> tuple[str, str, Type, bool]:
    return (name, "DOUBLE", _DOUBLE, nullable)


_TEXTS: Final = "MAP(VARCHAR, VARCHAR)"
_MAP_OF_TEXTS = MapType(_TEXT, _TEXT)


def _structs(name: str, fields: dict[str, tuple[str, Type]]) -> tuple[str, str, Type, bool]:
    """Returns the definition of a column of lists of structs. ``fields`` has the type in DuckDB and
    the type in Delta of each field."""
    kinds = ", ".join(f"{field} {kind}" for field, (kind, _) in fields.items())
    struct = StructType([Field(field, kind) for field, (_, kind) in fields.items()])
    return (name, f"STRUCT({kinds})[]", ArrayType(struct, contains_null=True), False)


def _texts(name: str) -> tuple[str, str, Type, bool]:
    """Returns the definition of a column that maps texts to texts."""
    return (name, _TEXTS, _MAP_OF_TEXTS, False)


EXPERIMENTS: Final = Table(
    "experiments_latest",
    (
        _text("account_id"),
        _time("update_time"),
        _time("delete_time", nullable=True),
        _text("experiment_id"),
        _text("workspace_id"),
        _text("name"),
        _time("create_time"),
    ),
    None,
    "experiment_id",
)
RUNS: Final = Table(
    "runs_latest",
    (
        _text("account_id"),
        _time("update_time"),
        _time("delete_time", nullable=True),
        _text("workspace_id"),
        _text("run_id"),
        _text("experiment_id"),
        _text("created_by", nullable=True),
        _time("start_time"),
        _time("end_time", nullable=True),
        _text("run_name"),
        _text("status"),
        _texts("params"),
        _texts("tags"),
        ("aggregated_metrics", AGGREGATE, _AGGREGATE, False),
    ),
    "start_month",
    "run_id,experiment_id,start_time,workspace_id",
)
HISTORY: Final = Table(
    "run_metrics_history",
    (
        _text("account_id"),
        _time("insert_time"),
        _text("record_id"),
        _text("workspace_id"),
        _text("experiment_id"),
        _text("run_id"),
        _text("metric_name"),
        _time("metric_time"),
        _integer("metric_step"),
        _double("metric_value"),
    ),
    "insert_date",
    "insert_time,experiment_id,run_id,workspace_id",
)
TRACES: Final = Table(
    "traces",
    (
        _text("account_id"),
        _time("update_time"),
        _text("workspace_id"),
        _text("experiment_id"),
        _text("trace_id"),
        _text("client_request_id", nullable=True),
        _text("trace_name", nullable=True),
        _time("request_time"),
        _integer("execution_duration_ms", nullable=True),
        _text("state"),
        _text("user_id", nullable=True),
        _text("session_id", nullable=True),
        _text("source_run_id", nullable=True),
        _text("request_preview", nullable=True),
        _text("response_preview", nullable=True),
        _integer("input_tokens", nullable=True),
        _integer("output_tokens", nullable=True),
        _integer("total_tokens", nullable=True),
        _integer("cache_read_input_tokens", nullable=True),
        _integer("cache_creation_input_tokens", nullable=True),
        _double("input_cost", nullable=True),
        _double("output_cost", nullable=True),
        _double("total_cost", nullable=True),
        ("linked_prompts", "VARCHAR[]", ArrayType(_TEXT, contains_null=True), False),
        _texts("trace_metadata"),
        _texts("tags"),
    ),
    "request_date",
    "request_time,experiment_id,trace_id,workspace_id",
)
ASSESSMENTS: Final = Table(
    "assessments",
    (
        _text("account_id"),
        _text("workspace_id"),
        _text("experiment_id"),
        _text("trace_id"),
        _time("request_time"),
        _text("assessment_id"),
        _text("assessment_name"),
        _text("assessment_type"),
        _text("value", nullable=True),
        _double("numeric_value", nullable=True),
        _text("error_code", nullable=True),
        _text("error_message", nullable=True),
        _text("source_type"),
        _text("source_id", nullable=True),
        _time("create_time"),
        _time("last_update_time"),
        _text("run_id", nullable=True),
        _text("span_id", nullable=True),
        _text("rationale", nullable=True),
        _text("overrides", nullable=True),
        ("valid", "BOOLEAN", PrimitiveType("boolean"), False),
        _texts("metadata"),
    ),
    "request_date",
    "request_time,experiment_id,trace_id,workspace_id",
)
SPANS: Final = Table(
    "spans",
    (
        _text("account_id"),
        _text("workspace_id"),
        _text("experiment_id"),
        _text("trace_id"),
        _time("request_time"),
        _text("span_id"),
        _text("parent_span_id", nullable=True),
        _text("name"),
        _text("kind"),
        _time("time"),
        _integer("start_time_unix_nano"),
        _integer("end_time_unix_nano", nullable=True),
        _texts("attributes"),
        _structs(
            "events",
            {
                "time_unix_nano": ("BIGINT", PrimitiveType("long")),
                "name": (_STRING, _TEXT),
                "attributes": (_TEXTS, _MAP_OF_TEXTS),
            },
        ),
        _structs(
            "links",
            {
                "trace_id": (_STRING, _TEXT),
                "span_id": (_STRING, _TEXT),
                "attributes": (_TEXTS, _MAP_OF_TEXTS),
            },
        ),
        (
            "status",
            "STRUCT(message VARCHAR, code VARCHAR)",
            StructType([Field("message", _TEXT), Field("code", _TEXT)]),
            False,
        ),
    ),
    "request_date",
    "request_time,experiment_id,trace_id,workspace_id",
)
AUDIT: Final = Table(
    "audit_log",
    (
        _text("account_id"),
        _time("event_time"),
        _time("insert_time"),
        _text("record_id"),
        _text("workspace_id"),
        _text("user_name", nullable=True),
        _text("user_id", nullable=True),
        _text("login"),
        _text("key_id", nullable=True),
        ("is_admin", "BOOLEAN", PrimitiveType("boolean"), False),
        _text("address"),
        _text("rpc"),
        _text("method"),
        _integer("http_status"),
        _text("outcome"),
        _text("entity"),
        _integer("sequence"),
        _text("previous_hash"),
        _text("hash"),
    ),
    "insert_date",
    "insert_time,event_time,workspace_id",
)
OF_TRACES: Final = (
    TRACES,
    ASSESSMENTS,
    SPANS,
)
"""The tables that a step about traces writes, in this order."""
TABLES: Final = (
    HISTORY,
    RUNS,
    EXPERIMENTS,
    *OF_TRACES,
    AUDIT,
)
"""All system tables. A step writes its tables in this order."""


def writer_properties(table: Table) -> WriterProperties:
    """Returns the properties that **every** compaction and sort must pass to delta-rs, because
    Delta does not store them with the table. ``metric_value`` has no statistics, otherwise readers
    would skip rows with NaN. DuckDB itself writes no statistics for columns that contain NaN."""
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
    """Returns the table's schema in Delta's types."""
    fields = [Field(name, kind, nullable=nullable) for name, _, kind, nullable in table.columns]
    if table.partition:
        fields.append(Field(table.partition, _TEXT, nullable=False))
    return Schema(fields)


def open_if_exists(lake: Lake, table: Table) -> DeltaTable | None:
    """Opens the current version of the table. None if nothing was published yet."""
    try:
        return DeltaTable(lake.uri(table.name), storage_options=lake.options)
    except TableNotFoundError:
        return None


def open_or_create(
    lake: Lake, table: Table, properties: Mapping[str, str] = MappingProxyType({})
) -> DeltaTable:
    """Opens the current version of the table and creates the table if it does not exist.

    Args:
        properties: properties of ours for a new table, besides those of Delta.
    """
    delta = open_if_exists(lake, table)
    if delta is None:
        delta = DeltaTable.create(
            lake.uri(table.name),
            schema=delta_schema(table),
            mode="ignore",
            partition_by=[table.partition] if table.partition else None,
            name=table.name,
            configuration={
                "delta.dataSkippingStatsColumns": table.skipping,
                "delta.checkpointInterval": "50",
                "delta.logRetentionDuration": "interval 1 days",
                "delta.deletedFileRetentionDuration": "interval 1 days",
                **properties,
            },
            raise_if_key_not_exists=not properties,
            storage_options=lake.options,
        )
    return delta
