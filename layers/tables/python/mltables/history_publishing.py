"""Publishes points of metrics: appends new points to ``run_metrics_history``, and removes the
points of deleted runs. A rewind sets a run back to a step; the points that it deleted are removed,
too."""

from __future__ import annotations

import duckdb

from mltables import rewound_points
from mltables.row_removal import remove_points
from mltables.snapshot import quoted
from mltables.table_definitions import HISTORY
from mltables.writable_table import WritableTable


def append_points(connection: duckdb.DuckDBPyConnection, history: WritableTable) -> int:
    """Appends to ``run_metrics_history`` the points of the runs in the staged table ``new_runs``
    that it lacks, in one file per day. Also removes the points of the runs in the staged table
    ``gone`` and the points that rewinds (deletions of a run's points after a step) deleted. All
    this is one commit. Returns the number of appended points."""
    rewound_points.remove_landed(connection)
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
            SELECT record_id FROM {known} h WHERE run_id IN (SELECT run_id FROM new_runs)
            AND NOT EXISTS (SELECT 1 FROM rewinds w WHERE {rewound_points.published("h")})
        ) USING (record_id)
        """
    )
    change = history.change()
    remove_points(connection, history, change)
    days = connection.execute("SELECT DISTINCT insert_date FROM new_points ORDER BY 1").fetchall()
    count = sum(
        change.add(
            f"SELECT {HISTORY.names} FROM new_points WHERE insert_date = {quoted(day)} "
            f"ORDER BY {HISTORY.order}",
            day,
        )
        for (day,) in days
    )
    change.commit()
    return count
