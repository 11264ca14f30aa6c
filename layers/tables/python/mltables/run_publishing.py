"""Publishes runs: rewrites the files of ``runs_latest`` that contain rows of changed runs.

A file has a bounded number of rows, sorted by run id. Run ids begin with the time of creation, so
a publication changes few files of a large table. In each month at most one file is not full; new
runs are added to it.
"""

from __future__ import annotations

from typing import Final

import duckdb

from mltables.snapshot import quoted
from mltables.table_commit import TableCommit
from mltables.table_definitions import FILE_BYTES, RUNS
from mltables.writable_table import WritableTable

FULL_FILE_ROWS: Final = 5000
"""A file with this many runs is full: no new runs are added to it."""

FULL_FILE_BYTES: Final = FILE_BYTES // 4
"""A file with this many bytes is full, even if it has fewer runs."""


def load_published_runs(
    connection: duckdb.DuckDBPyConnection, runs: WritableTable
) -> dict[str, str]:
    """Creates the table ``old_runs``: the published rows of the runs in the staged table ``part``,
    with the ``file`` that contains each. Returns the searched files: their names in Delta's log, by
    local path."""
    files = runs.local(runs.names(runs.overlapping("part", "run_id")))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE old_runs AS
        SELECT {RUNS.stored}, filename AS file FROM {runs.read(files)}
        WHERE run_id IN (SELECT run_id FROM part)
        """
    )
    return files


def publish(
    connection: duckdb.DuckDBPyConnection, runs: WritableTable, files: dict[str, str]
) -> int:
    """Replaces in ``runs_latest`` the rows in the staged table ``old_runs`` by those in
    ``aggregated_runs``, and removes the runs in ``gone``, in one commit. Returns the number of runs
    that were written or removed.

    Args:
        files: as :func:`load_published_runs` returned them.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE changed_runs AS
        SELECT {RUNS.stored} FROM aggregated_runs EXCEPT ALL SELECT {RUNS.stored} FROM old_runs;
        CREATE OR REPLACE TEMP TABLE replaced AS
        SELECT run_id, start_month, file FROM old_runs
        WHERE run_id IN (SELECT run_id FROM changed_runs UNION ALL SELECT run_id FROM gone)
        """
    )
    touched = _column(connection, "SELECT DISTINCT file FROM replaced ORDER BY 1")
    full = set(runs.names(f"num_records >= {FULL_FILE_ROWS} OR size_bytes >= {FULL_FILE_BYTES}"))
    change = runs.change()
    _rewrite_full(
        connection, runs, change, {path: files[path] for path in touched if files[path] in full}
    )
    _rewrite_partial(
        connection, runs, change, full, {files[path] for path in touched if files[path] not in full}
    )
    change.commit()
    return _number(connection, "SELECT count(*) FROM changed_runs") + _number(
        connection, "SELECT count(*) FROM replaced SEMI JOIN gone USING (run_id)"
    )


def _rewrite_full(
    connection: duckdb.DuckDBPyConnection,
    runs: WritableTable,
    change: TableCommit,
    files: dict[str, str],
) -> None:
    """Rewrites each full file separately. Puts into the table ``loose`` the changed rows that do
    not belong to these files: runs that are new, in other files, or now in another month."""
    listed = ", ".join(map(quoted, files)) or "NULL"
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE kept_place AS
        SELECT c.*, r.file FROM changed_runs c JOIN replaced r USING (run_id, start_month)
        WHERE r.file IN ({listed});
        CREATE OR REPLACE TEMP TABLE loose AS
        SELECT * FROM changed_runs ANTI JOIN kept_place USING (run_id)
        """
    )
    for path, name in files.items():
        change.remove([name])
        change.add(
            f"""
            SELECT {RUNS.names} FROM {runs.read([path])} ANTI JOIN replaced USING (run_id)
            UNION ALL SELECT {RUNS.names} FROM kept_place WHERE file = {quoted(path)}
            ORDER BY run_id
            """,
            _month_of(name),
        )


def _rewrite_partial(
    connection: duckdb.DuckDBPyConnection,
    runs: WritableTable,
    change: TableCommit,
    full: set[str],
    touched: set[str],
) -> None:
    """Writes the rows in ``loose`` together with the rows of their months' files that are not full.

    Args:
        full: names of full files, to which these rows are not added.
        touched: names of files that are not full and hold rows to replace.
    """
    months = set(_column(connection, "SELECT DISTINCT start_month FROM loose"))
    for month in sorted(months | {_month_of(name) for name in touched}):
        names = [name for name in runs.names() if _month_of(name) == month and name not in full]
        change.remove(names)
        connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE month AS
            SELECT *, (row_number() OVER (ORDER BY run_id) - 1) // {FULL_FILE_ROWS} AS number FROM (
                SELECT {RUNS.names} FROM {runs.read(runs.local(names))}
                ANTI JOIN replaced USING (run_id)
                UNION ALL SELECT {RUNS.names} FROM loose WHERE start_month = {quoted(month)}
            )
            """
        )
        for number in range(_number(connection, "SELECT coalesce(max(number) + 1, 0) FROM month")):
            change.add(
                f"SELECT {RUNS.names} FROM month WHERE number = {number} ORDER BY run_id", month
            )


def _month_of(name: str) -> str:
    """Returns the value of the partition, which is the name of the first folder in a file's
    name."""
    return name.partition("/")[0].partition("=")[2]


def _column(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [value for (value,) in connection.execute(query).fetchall()]


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    number: int = connection.execute(query).fetchall()[0][0]
    return number
