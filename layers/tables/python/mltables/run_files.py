"""Publishes runs: replaces their rows in ``runs_latest`` by writing the files anew that hold them.

A file has a bounded number of rows, sorted by run id. Run ids begin with the time of creation, so
that few files of a large table are touched. Of the files of a month all but one are full; new runs
go to the one that is not.
"""

from __future__ import annotations

from typing import Final

import duckdb

from mltables.change import Change
from mltables.snapshot import quoted
from mltables.tables import FILE_BYTES, RUNS
from mltables.target import Target

ROWS: Final = 5000
"""Runs of a full file."""

FULL_BYTES: Final = FILE_BYTES // 4
"""A file of so many bytes is full, however few its runs are."""


def load_old(connection: duckdb.DuckDBPyConnection, runs: Target) -> dict[str, str]:
    """Makes ``old_runs``: the published rows of the runs in ``part``, and the ``file`` that has
    them. Returns the files that may have been looked at: path here, and name in the log."""
    files = runs.local(runs.names(runs.overlapping("part", "run_id")))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE old_runs AS
        SELECT {RUNS.stored}, filename AS file FROM {runs.read(files)}
        WHERE run_id IN (SELECT run_id FROM part)
        """
    )
    return files


def publish(connection: duckdb.DuckDBPyConnection, runs: Target, files: dict[str, str]) -> int:
    """One commit that brings ``old_runs`` to what ``aggregated_runs`` has, and removes those in
    ``gone``; returns how many runs were written or removed.

    Args:
        files: as :func:`load_old` returned them.
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
    full = set(runs.names(f"num_records >= {ROWS} OR size_bytes >= {FULL_BYTES}"))
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
    connection: duckdb.DuckDBPyConnection, runs: Target, change: Change, files: dict[str, str]
) -> None:
    """Writes each file anew by itself. Leaves in ``loose`` the changed rows that have no place in
    these files: those of runs that are new, in other files, or in another month than before."""
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
    runs: Target,
    change: Change,
    full: set[str],
    touched: set[str],
) -> None:
    """Writes the loose rows, together with the files of their months that are not full.

    Args:
        full: names of files that are left as they are.
        touched: names of others that have rows which are replaced.
    """
    months = set(_column(connection, "SELECT DISTINCT start_month FROM loose"))
    for month in sorted(months | {_month_of(name) for name in touched}):
        names = [name for name in runs.names() if _month_of(name) == month and name not in full]
        change.remove(names)
        connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE month AS
            SELECT *, (row_number() OVER (ORDER BY run_id) - 1) // {ROWS} AS number FROM (
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
    """The partition that the name of a file begins with."""
    return name.partition("/")[0].partition("=")[2]


def _column(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [value for (value,) in connection.execute(query).fetchall()]


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    number: int = connection.execute(query).fetchall()[0][0]
    return number
