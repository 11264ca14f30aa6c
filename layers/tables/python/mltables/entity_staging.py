"""Loads rows of entities (``mlcore/system_tables/entity_sources``) into temporary DuckDB tables, in
batches of a bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from mlcore.system_tables.entity_sources import Row
from mlcore.system_tables.location import account_id
from mltables.snapshot import quoted
from mltables.table_columns import TIME, Table

BATCH_BYTES: Final = 24 << 20
"""A batch ends with the row that reaches this size, as JSON. Bounds memory and disk."""
BATCH_ROWS: Final = 5000
_LINE_BYTES: Final = 16 << 20
"""DuckDB's default limit for the length of a line."""
_INHERITED: Final = "inherited_"
"""Prefix of the inherited columns in the table ``roots``."""


def batches(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: Iterator[Row],
    folder: Path,
    inherited: Sequence[str] = (),
) -> Iterator[list[Row]]:
    """Stages each batch of rows in ``new_rows``, with all stored columns of the table, and yields
    the batch.

    Args:
        inherited: the columns that come from the staged table ``roots`` (:func:`load_roots`). Rows
            whose root is not there are left out.
    """
    path = folder / "entities.ndjson"
    while batch := _write(rows, path):
        batch_rows, longest = batch
        _load(connection, table, inherited, path, longest)
        path.unlink()
        yield batch_rows


def load_none(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Creates ``new_rows`` without rows."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE new_rows AS SELECT * FROM {table.nothing}")


def load_ids(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    table: Table,
    columns: Sequence[str],
    ids: Sequence[Sequence[Any]],
) -> None:
    """Creates a temporary table with these columns of a table, and one row for each of ``ids``."""
    kinds = {column: kind for column, kind, *_ in table.columns}
    listed = ", ".join(f"{column} {kinds[column]}" for column in columns)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} ({listed})")
    if ids:
        values = ", ".join(f"unnest(?::{kinds[column]}[])" for column in columns)
        connection.execute(
            f"INSERT INTO {name} SELECT {values}", [*map(list, zip(*ids, strict=True))]
        )


def load_roots(
    connection: duckdb.DuckDBPyConnection, source: str, key: str, inherited: Sequence[str]
) -> None:
    """Creates ``roots``: the ids of roots, with the columns that their parts inherit.

    Args:
        source: a FROM source with the rows of the roots.
        key: the column with their ids.
    """
    columns = ", ".join(f"{column} AS {_INHERITED}{column}" for column in inherited)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE roots AS SELECT {key}, {columns} FROM {source}"
    )


def differs(inherited: Sequence[str]) -> str:
    """Returns an SQL condition on rows of parts that are joined with ``roots``: true if an
    inherited column differs from that of the root."""
    return " OR ".join(f"{column} IS DISTINCT FROM {_INHERITED}{column}" for column in inherited)


def corrected(inherited: Sequence[str]) -> str:
    """Returns the ``REPLACE`` list that corrects inherited columns of rows of parts left-joined
    with ``roots``."""
    return ", ".join(
        f"coalesce({_INHERITED}{column}, {column}) AS {column}" for column in inherited
    )


def _write(rows: Iterator[Row], path: Path) -> tuple[list[Row], int] | None:
    """Writes a batch. Returns its rows and the length of the longest line; None without rows."""
    batch: list[Row] = []
    size = longest = 0
    with path.open("w", encoding="ascii") as file:
        for row in rows:
            line = json.dumps(row._asdict()) + "\n"
            size += file.write(line)
            longest = max(longest, len(line))
            batch.append(row)
            if size >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
                break
    if not batch:
        path.unlink()
        return None
    return batch, longest


def _load(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    inherited: Sequence[str],
    path: Path,
    longest: int,
) -> None:
    read, selected = [], []
    for name, kind, *_ in table.columns:
        if name == "account_id":
            selected.append(f"{quoted(account_id())} AS account_id")
        elif name in inherited:
            selected.append(f"{_INHERITED}{name} AS {name}")
        elif kind == TIME:
            read.append(f"{name}: 'BIGINT'")
            selected.append(f"make_timestamp({name} * 1000)::TIMESTAMPTZ AS {name}")
        else:
            read.append(f"{name}: '{kind}'")
            selected.append(name)
    partition = f"strftime(make_timestamp({table.time} * 1000), '{table.time_format}')"
    root = table.identity.split(", ", maxsplit=1)[0]
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE new_rows AS
        SELECT {", ".join(selected)}, {partition} AS {table.partition}
        FROM read_ndjson({quoted(str(path))}, columns={{{", ".join(read)}}},
                         maximum_object_size={max(_LINE_BYTES, longest)})
        {f"JOIN roots USING ({root})" if inherited else ""}
        """
    )
