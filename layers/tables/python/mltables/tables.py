"""What the tables are: columns, types, properties, and how their files are written."""

from __future__ import annotations

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
"""The application that Delta's transactions are numbered for."""

ROW_GROUP: Final = 65_536
FILE_BYTES: Final = 64 << 20
"""What compaction aims at."""


class Table(NamedTuple):
    """A table. ``columns`` are those that queries see, as (name, type in DuckDB, type in Delta,
    nullable); ``partition`` is a further column of text."""

    name: str
    columns: tuple[tuple[str, str, Type, bool], ...]
    partition: str | None
    skipping: str
    """The columns with statistics in the log. Never a double: what a reader skips by the greatest
    value of a file would be rows with NaN, which statistics leave out."""

    @property
    def names(self) -> str:
        return ", ".join(name for name, *_ in self.columns)

    @property
    def stored(self) -> str:
        """The columns of the files, the partition's included."""
        return self.names + (f", {self.partition}" if self.partition else "")

    @property
    def nothing(self) -> str:
        """What a FROM takes for the table while it has no files."""
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
        ("params", "MAP(VARCHAR, VARCHAR)", MapType(_TEXT, _TEXT), False),
        ("tags", "MAP(VARCHAR, VARCHAR)", MapType(_TEXT, _TEXT), False),
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
        ("metric_step", "BIGINT", PrimitiveType("long"), False),
        ("metric_value", "DOUBLE", _DOUBLE, False),
    ),
    "insert_date",
    "insert_time,experiment_id,run_id,workspace_id",
)
TABLES: Final = (HISTORY, RUNS, EXPERIMENTS)
"""In the order in which they are written."""


def writer(table: Table) -> WriterProperties:
    """How delta-rs writes files, in **every** compaction and sort, for it is no property of the
    table. Without statistics of values, else readers would skip rows with NaN; what DuckDB writes
    has none of columns in which there is one."""
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


def schema(table: Table) -> Schema:
    """As the table's log has it."""
    fields = [Field(name, kind, nullable=nullable) for name, _, kind, nullable in table.columns]
    if table.partition:
        fields.append(Field(table.partition, _TEXT, nullable=False))
    return Schema(fields)


def existing(lake: Lake, table: Table) -> DeltaTable | None:
    """The table as it is now; None when nothing was ever published."""
    try:
        return DeltaTable(lake.uri(table.name), storage_options=lake.options)
    except TableNotFoundError:
        return None


def opened(lake: Lake, table: Table) -> DeltaTable:
    """The table as it is now; made when it is not there."""
    delta = existing(lake, table)
    if delta is None:
        delta = DeltaTable.create(
            lake.uri(table.name),
            schema=schema(table),
            mode="ignore",
            partition_by=[table.partition] if table.partition else None,
            name=table.name,
            configuration={
                "delta.dataSkippingStatsColumns": table.skipping,
                "delta.checkpointInterval": "50",
                "delta.logRetentionDuration": "interval 1 days",
                "delta.deletedFileRetentionDuration": "interval 1 days",
            },
            storage_options=lake.options,
        )
    return delta
