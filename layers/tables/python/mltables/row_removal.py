"""Removes the rows of given entities from a partitioned system table, or corrects the workspace of
the rows of experiments, by rewriting only the files that have such rows."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

from mltables import rewound_points
from mltables.table_commit import TableCommit
from mltables.writable_table import WritableTable


def remove_rows(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    change: TableCommit,
    named: str,
    column: str,
) -> None:
    """Adds to a commit the removal of all rows whose value of ``column`` is in the staged table
    ``named``.

    Args:
        named: the staged table with the ids of the removed entities.
        column: the name of the id column in both tables.
    """
    rewrite(
        connection,
        table,
        change,
        table.overlapping(named, column),
        lambda files: f"{files} SEMI JOIN {named} USING ({column})",
        lambda file: f"{file} ANTI JOIN {named} USING ({column})",
    )


def remove_points(
    connection: duckdb.DuckDBPyConnection, table: WritableTable, change: TableCommit
) -> None:
    """Adds to a commit of the system table of metric history the removal of points: all points of
    the runs in the staged table ``gone``, and the points that rewinds of their runs deleted (staged
    table ``rewinds``)."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE losing AS SELECT run_id FROM gone "
        "UNION SELECT run_id FROM rewinds"
    )
    deleted = (
        "(run_id IN (SELECT run_id FROM gone) OR EXISTS "
        f"(SELECT 1 FROM rewinds w WHERE {rewound_points.published('h')}))"
    )
    rewrite(
        connection,
        table,
        change,
        table.overlapping("losing", "run_id"),
        lambda files: f"{files} h WHERE {deleted}",
        lambda file: f"(SELECT * FROM {file} h WHERE NOT {deleted})",
    )


def correct_workspaces(connection: duckdb.DuckDBPyConnection, table: WritableTable) -> None:
    """Sets the workspace of the rows of the experiments in the staged table ``placed`` to its
    column ``destination``, in one commit. Rewrites only files that have a row with a wrong
    workspace."""
    change = table.change()
    rewrite(
        connection,
        table,
        change,
        table.misplaced("placed"),
        lambda files: (
            f"{files} JOIN placed USING (experiment_id) WHERE workspace_id <> destination"
        ),
        lambda file: (
            "(SELECT * REPLACE (coalesce(destination, workspace_id) AS workspace_id) "
            f"FROM {file} LEFT JOIN placed USING (experiment_id))"
        ),
    )
    change.commit()


def rewrite(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    change: TableCommit,
    maybe: str,
    affected_rows: Callable[[str], str],
    new_rows: Callable[[str], str],
) -> None:
    """Adds to a commit of a system table the replacement of each of the table's files that has rows
    to change or remove (*affected* rows) by a new file.

    Args:
        maybe: an SQL condition on the statistics of a file, true for every file that may have
            affected rows.
        affected_rows: turns a FROM source into one with the affected rows only.
        new_rows: turns the FROM source of a file into one with the rows of the new file.
    """
    partition = table.table.partition
    files = table.local(table.names(maybe))
    affected = connection.execute(
        f"SELECT filename, any_value({partition}) FROM {affected_rows(table.read(files))} "
        "GROUP BY filename ORDER BY filename"
    ).fetchall()
    for path, value in affected:
        change.remove([files[path]])
        change.add(
            f"SELECT {table.table.names} FROM {new_rows(table.read([path]))} "
            f"ORDER BY {table.table.file_order}",
            value,
        )
