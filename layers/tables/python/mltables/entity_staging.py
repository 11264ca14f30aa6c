"""Loads rows of entities such as registered models (``mlcore/system_tables/entity_sources``) into
temporary DuckDB tables, in batches of a bounded size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from mlcore.system_tables.aws_account import account_id
from mlcore.system_tables.entity_sources import Row
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
    """Splits rows of ``table`` into batches. For each batch, creates the temporary table
    ``new_rows`` of DuckDB with all stored columns of ``table``, then yields the batch's rows.

    Args:
        inherited: the columns that are copied from the row's root (such as a version's model) in
            the temporary table ``roots`` (:func:`load_roots`). If there are any, ``new_rows`` lacks
            rows whose root is not in ``roots``; they are yielded nevertheless.
    """
    path = folder / "entities.ndjson"
    while batch := _write(rows, path):
        batch_rows, longest = batch
        _load(connection, table, inherited, path, longest)
        path.unlink()
        yield batch_rows


def load_none(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Creates the temporary table ``new_rows`` with the stored columns of ``table`` and without
    rows."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE new_rows AS SELECT * FROM {table.nothing}")


def load_ids(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    table: Table,
    columns: Sequence[str],
    ids: Sequence[Sequence[Any]],
) -> None:
    """Creates a temporary table that holds only ``ids``, one row each. Its columns are named
    ``columns`` and have the types that they have in ``table``."""
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
    """Creates the temporary table ``roots``: the ids of roots (such as registered models), with the
    columns that the rows of their parts (such as model versions) copy from them.

    Args:
        source: a FROM source with the rows of the roots.
        key: the column with their ids.
    """
    columns = ", ".join(f"{column} AS {_INHERITED}{column}" for column in inherited)
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE roots AS SELECT {key}, {columns} FROM {source}"
    )


def differs(inherited: Sequence[str]) -> str:
    """Returns an SQL condition on rows of parts (such as model versions), joined with their roots
    (such as registered models) in the temporary table ``roots``: true if one of the columns
    ``inherited``, which parts copy from their root, has another value than in the root."""
    return " OR ".join(f"{column} IS DISTINCT FROM {_INHERITED}{column}" for column in inherited)


def corrected(inherited: Sequence[str]) -> str:
    """Returns the SQL of a ``REPLACE`` list for rows of parts (such as model versions), left-joined
    with their roots (such as registered models) in the temporary table ``roots``: each column in
    ``inherited``, which parts copy from their root, gets the root's value."""
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
