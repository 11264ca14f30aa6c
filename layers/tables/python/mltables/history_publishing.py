"""Publishes points: appends landed points to ``run_metrics_history``, removes the points of deleted
runs, and corrects the workspace of points whose experiment was moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import duckdb

from mltables.snapshot import quoted
from mltables.table_commit import TableCommit
from mltables.table_definitions import HISTORY
from mltables.writable_table import WritableTable

_ORDER: Final = "experiment_id, run_id, metric_name, metric_step, metric_time"


def append_points(connection: duckdb.DuckDBPyConnection, history: WritableTable) -> int:
    """Appends those points of the staged runs (``new_runs``) that the history lacks, in one file
    per day, and removes the points of the runs in ``gone``, all in one commit. Returns the number
    of appended points."""
    known = history.source(history.overlapping("points", "run_id"))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE new_points AS
        SELECT n.account_id, make_timestamp(p.insert_time * 1000)::TIMESTAMPTZ AS insert_time,
               p.record_id, n.workspace_id, p.experiment_id, p.run_id, p.metric_name,
               make_timestamp(p.metric_time * 1000)::TIMESTAMPTZ AS metric_time,
               p.metric_step, p.metric_value,
               strftime(make_timestamp(p.insert_time * 1000), '%Y-%m-%d') AS insert_date
        FROM points p JOIN new_runs n USING (run_id)
        ANTI JOIN (
            SELECT record_id FROM {known} WHERE run_id IN (SELECT run_id FROM new_runs)
        ) USING (record_id)
        """
    )
    change = history.change()
    _rewrite(
        connection,
        history,
        change,
        "gone",
        "run_id",
        lambda file: f"{file} ANTI JOIN gone USING (run_id)",
    )
    days = connection.execute("SELECT DISTINCT insert_date FROM new_points ORDER BY 1").fetchall()
    count = sum(
        change.add(_sorted(f"new_points WHERE insert_date = {quoted(day)}"), day) for (day,) in days
    )
    change.commit()
    return count


def correct_workspaces(connection: duckdb.DuckDBPyConnection, history: WritableTable) -> None:
    """Sets the workspace of the points of the experiments in ``placed`` to ``destination``, in one
    commit. Rewrites only files that have a point with another workspace."""
    files = history.local(history.names(history.misplaced("placed")))
    affected = connection.execute(
        f"""
        SELECT filename, any_value(insert_date)
        FROM {history.read(files)} JOIN placed USING (experiment_id)
        WHERE workspace_id <> destination GROUP BY filename
        """
    ).fetchall()
    change = history.change()
    for path, day in affected:
        change.remove([files[path]])
        change.add(
            _sorted(
                "(SELECT * REPLACE (coalesce(destination, workspace_id) AS workspace_id) "
                f"FROM {history.read([path])} LEFT JOIN placed USING (experiment_id))"
            ),
            day,
        )
    change.commit()


def _rewrite(
    connection: duckdb.DuckDBPyConnection,
    history: WritableTable,
    change: TableCommit,
    named: str,
    column: str,
    rewritten: Callable[[str], str],
) -> None:
    """Rewrites the files that have rows of the runs or experiments in a staged table.

    Args:
        named: the staged table.
        column: the id that it shares with the history.
        rewritten: turns the FROM source of a file into that of its new rows.
    """
    files = history.local(history.names(history.overlapping(named, column)))
    affected = connection.execute(
        f"""
        SELECT filename, any_value(insert_date) FROM {history.read(files)}
        WHERE {column} IN (SELECT {column} FROM {named}) GROUP BY filename
        """
    ).fetchall()
    for path, day in affected:
        change.remove([files[path]])
        change.add(_sorted(rewritten(history.read([path]))), day)


def _sorted(rows: str) -> str:
    return f"SELECT {HISTORY.names} FROM {rows} ORDER BY {_ORDER}"
