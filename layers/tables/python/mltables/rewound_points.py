"""Finds points of metrics that were deleted: by rewinds (a rewind of a run deletes its points after
a step), or because the request that logged them was refused after it had written them.

The staged table ``rewinds`` has a row for each rewind of a run, or, if the rewind names metrics,
one for each of them: ``run_id``, ``rewound_at`` (milliseconds), ``after_step`` (NULL for all steps)
and ``metric_name`` (NULL for all). A rewind deletes the points after that step that were inserted
at ``rewound_at`` or before. Points that are logged again are inserted later
(:mod:`mlcore.repos.runs.history.rewinds`). A row with a ``record_id``, which other rows lack, is
about a point of a refused request: it deletes that point if it was inserted at ``rewound_at``.
"""

from __future__ import annotations

import duckdb


def deletes(point: str, inserted: str) -> str:
    """Returns the SQL condition that is true if the rewind in row ``w`` of the table ``rewinds``
    (see the top of this file) deleted a metric point.

    Args:
        point: the alias of the table with the point.
        inserted: an SQL expression for when the point was inserted (milliseconds since the epoch).
    """
    return (
        f"w.run_id = {point}.run_id AND {inserted} <= w.rewound_at AND (w.record_id IS NULL OR "
        f"(w.record_id = {point}.record_id AND {inserted} = w.rewound_at)) "
        f"AND (w.after_step IS NULL OR {point}.metric_step > w.after_step) "
        f"AND (w.metric_name IS NULL OR w.metric_name = {point}.metric_name)"
    )


def published(point: str) -> str:
    """Returns the SQL condition under which the row ``w`` of the table ``rewinds`` (a run's points
    after a step are deleted) deletes a point of the published metric history."""
    return deletes(point, f"epoch_ms({point}.insert_time)")


def add_refused(connection: duckdb.DuckDBPyConnection) -> None:
    """Adds the points of refused requests (staged table ``refused``) to the table ``rewinds`` of
    the runs that are being published."""
    connection.execute(
        """
        INSERT INTO rewinds BY NAME
        SELECT run_id, insert_time AS rewound_at, NULL AS after_step, metric_name, record_id
        FROM refused SEMI JOIN new_runs USING (run_id)
        """
    )


def remove_landed(connection: duckdb.DuckDBPyConnection) -> None:
    """Removes the points that a rewind of their run deleted from the temporary table ``points``
    (points that are not published yet). A point that was logged again after a rewind gets the time
    at which it was logged last."""
    connection.execute(
        f"""
        DELETE FROM points WHERE EXISTS
            (SELECT 1 FROM rewinds w WHERE {deletes("points", "points.last_insert_time")});
        UPDATE points SET insert_time = last_insert_time WHERE EXISTS
            (SELECT 1 FROM rewinds w WHERE {deletes("points", "points.insert_time")})
        """
    )
