"""Publishes points: appends to ``run_metrics_history`` what landed, removes the points of runs that
are gone, and corrects those of experiments that were moved to another workspace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import duckdb

from mltables.change import Change
from mltables.snapshot import quoted
from mltables.tables import HISTORY
from mltables.target import Target

_ORDER: Final = "experiment_id, run_id, metric_name, metric_step, metric_time"


def publish(connection: duckdb.DuckDBPyConnection, history: Target) -> int:
    """One commit for the staged runs (``new_runs``, ``gone``): their points in ``points`` that the
    history does not have are appended, in a file for each day; returns their number."""
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


def move(connection: duckdb.DuckDBPyConnection, history: Target) -> None:
    """One commit that gives the points of the experiments in ``placed`` the workspace
    ``destination``. Only files with a point in another workspace are written."""
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
    history: Target,
    change: Change,
    named: str,
    column: str,
    rewritten: Callable[[str], str],
) -> None:
    """Writes the files anew that have rows of the runs or experiments in a staged table.

    Args:
        named: the staged table, which has the column.
        rewritten: makes a FROM of a file's new rows, of a FROM of its rows.
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
