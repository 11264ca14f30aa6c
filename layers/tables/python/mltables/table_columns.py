"""The definition of a system table: its columns with their types, and how its files are
partitioned, sorted and found."""

from __future__ import annotations

from typing import Final, NamedTuple

from deltalake import Field
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType

Type = PrimitiveType | MapType | StructType | ArrayType
Column = tuple[str, str, Type, bool]
"""Name, type in DuckDB, type in Delta, and whether the column may be NULL."""

DERIVED_MARK: Final = "part-a3-"
"""The prefix of the names of files that have the columns in ``Table.derived``. The number changes
when the columns change."""


class Table(NamedTuple):
    """A system table. ``columns`` are the columns that queries see. ``partition`` names one more
    column, a text, by which files are partitioned: the day (``…_date``) or month (``…_month``) of
    the column ``time``."""

    name: str
    columns: tuple[Column, ...]
    partition: str | None
    skipping: str
    """The columns with statistics in Delta's log, separated by commas. Never a double: statistics
    ignore NaN, so a reader would skip files that hold rows with NaN."""
    identity: str = ""
    """The columns that identify a row, separated by commas; empty if no columns do."""
    order: str = ""
    """The columns by which the rows of a partition are sorted, separated by commas."""
    time: str = ""
    derived: tuple[tuple[str, str], ...] = ()
    """Columns of the files that are not in Delta's schema, each with the SQL expression over
    ``columns`` from which it is computed. Files without ``DERIVED_MARK`` lack them."""

    first: str = ""
    """An SQL condition: the rows that meet it come first in each file, so that a query for only
    these does not read the rest."""

    derived_from: tuple[str, ...] = ()
    """Those of ``columns`` from which ``derived`` are computed."""
    derived_view: str = ""
    """The view of the table that also has ``derived``. No statement can name it."""
    parquet: str = "V1"
    """The version of Parquet's encodings in the table's files, as DuckDB names it. V2 stores
    numbers and times as differences, which are read in a third of the time. Only for tables without
    doubles: the encoding that DuckDB uses for these in V2 is unknown to many readers."""

    @property
    def file_order(self) -> str:
        """Returns the SQL after ORDER BY by which each file of the system table is sorted."""
        return f"({self.first}) IS NOT TRUE, {self.order}" if self.first else self.order

    @property
    def time_format(self) -> str:
        """Returns the ``strftime`` format that makes the name of a system table's partition (a day
        or month) from the time of a row."""
        return "%Y-%m" if (self.partition or "").endswith("_month") else "%Y-%m-%d"

    @property
    def names(self) -> str:
        """Returns those of the system table's columns that SQL queries see, separated by commas."""
        return ", ".join(name for name, *_ in self.columns)

    @property
    def stored(self) -> str:
        """Returns all columns of the system table, including the partition's, separated by
        commas."""
        return self.names + (f", {self.partition}" if self.partition else "")

    @property
    def nothing(self) -> str:
        """Returns SQL to use after FROM while the system table has no files: it yields no rows."""
        columns = [(name, kind) for name, kind, *_ in self.columns]
        if self.partition:
            columns.append((self.partition, "VARCHAR"))
        empty = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns)
        return f"(SELECT {empty} WHERE false)"


STRING: Final = "VARCHAR"
TEXT: Final = PrimitiveType("string")
DOUBLE: Final = PrimitiveType("double")
BOOLEAN: Final = PrimitiveType("boolean")
TIME: Final = "TIMESTAMP WITH TIME ZONE"
TEXTS: Final = "MAP(VARCHAR, VARCHAR)"
MAP_OF_TEXTS: Final = MapType(TEXT, TEXT)


def text_column(name: str, *, nullable: bool = False) -> Column:
    return (name, STRING, TEXT, nullable)


def time_column(name: str, *, nullable: bool = False) -> Column:
    return (name, TIME, PrimitiveType("timestamp"), nullable)


def integer_column(name: str, *, nullable: bool = False) -> Column:
    return (name, "BIGINT", PrimitiveType("long"), nullable)


def double_column(name: str, *, nullable: bool = False) -> Column:
    return (name, "DOUBLE", DOUBLE, nullable)


def boolean_column(name: str, *, nullable: bool = False) -> Column:
    return (name, "BOOLEAN", BOOLEAN, nullable)


def structs_column(name: str, fields: dict[str, tuple[str, Type]]) -> Column:
    """Returns the definition of a column of lists of structs. ``fields`` has the type in DuckDB and
    the type in Delta of each field."""
    kinds = ", ".join(f"{field} {kind}" for field, (kind, _) in fields.items())
    struct = StructType([Field(field, kind) for field, (_, kind) in fields.items()])
    return (name, f"STRUCT({kinds})[]", ArrayType(struct, contains_null=True), False)


def texts_column(name: str) -> Column:
    """Returns the definition of a system table's column with maps from text to text as values."""
    return (name, TEXTS, MAP_OF_TEXTS, False)


def integers_column(name: str) -> Column:
    """Returns the definition of a system table's column of maps from text to integer."""
    return (name, "MAP(VARCHAR, BIGINT)", MapType(TEXT, PrimitiveType("long")), False)


def list_column(name: str) -> Column:
    """Returns the definition of a system table's column whose values are lists of texts."""
    return (name, "VARCHAR[]", ArrayType(TEXT, contains_null=True), False)
