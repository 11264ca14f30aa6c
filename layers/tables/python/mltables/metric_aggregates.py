"""Computes the column ``aggregated_metrics`` of ``runs_latest`` from temporary tables that a
publication has loaded. Reads and writes no Delta table itself."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

from mltables import rewound_points
from mltables.table_definitions import AGGREGATE


def aggregate_metrics(
    connection: duckdb.DuckDBPyConnection, history_of: Callable[[str], str]
) -> None:
    """Creates the temporary table ``aggregated_runs``, the new rows of the changed runs. The latest
    value of a metric comes from the run. The smallest and greatest are computed from their
    published values, the points that are not published yet and the latest value; if one of these is
    NaN, both are NaN. For runs that were rewound, they are computed from the published points
    instead of the published values, which may belong to deleted points.

    Args:
        history_of: takes the name of a staged table and returns a FROM source with the published
            points of its runs.
    """
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE reach AS
        SELECT run_id, one.metric_name, one.min_value, one.max_value
        FROM (SELECT run_id, unnest(aggregated_metrics) AS one FROM old_runs
              ANTI JOIN rewinds USING (run_id))
        UNION ALL
        SELECT run_id, metric_name,
               CASE WHEN bool_or(isnan(metric_value)) THEN 'nan' ELSE min(metric_value) END,
               CASE WHEN bool_or(isnan(metric_value)) THEN 'nan' ELSE max(metric_value) END
        FROM points SEMI JOIN new_runs USING (run_id) GROUP BY ALL
        """
    )
    _add_reach_of_history(connection, history_of)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE aggregated_runs AS
        WITH ends AS (
            SELECT run_id, metric_name, any_value(latest_value) AS latest_value,
                   CASE WHEN bool_or(isnan(low)) THEN 'nan'::DOUBLE ELSE min(low) END AS low,
                   CASE WHEN bool_or(isnan(high)) THEN 'nan'::DOUBLE ELSE max(high) END AS high
            FROM (
                SELECT l.run_id, l.metric_name, l.latest_value,
                       unnest([r.min_value, l.latest_value]) AS low,
                       unnest([r.max_value, l.latest_value]) AS high
                FROM latest l JOIN reach r USING (run_id, metric_name)
            ) GROUP BY ALL
        ), lists AS (
            SELECT run_id, list({{
                metric_name: metric_name, latest_value: latest_value, min_value: low,
                max_value: high}} ORDER BY metric_name) AS aggregated_metrics
            FROM ends GROUP BY run_id
        )
        SELECT n.*, coalesce(l.aggregated_metrics, []::{AGGREGATE}) AS aggregated_metrics
        FROM new_runs n LEFT JOIN lists l USING (run_id)
        """
    )


def _add_reach_of_history(
    connection: duckdb.DuckDBPyConnection, history_of: Callable[[str], str]
) -> None:
    """Adds to ``reach`` the smallest and greatest published values of metrics that it lacks. Such a
    metric has points that were published before the run itself had the metric, or its run was
    rewound."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE unknown AS "
        "SELECT run_id, metric_name FROM latest ANTI JOIN reach USING (run_id, metric_name) "
        "UNION SELECT run_id, metric_name FROM latest SEMI JOIN rewinds USING (run_id)"
    )
    if connection.execute("SELECT count(*) FROM unknown").fetchall() == [(0,)]:
        return
    history = history_of("unknown")
    connection.execute(
        f"""
        INSERT INTO reach
        SELECT run_id, metric_name,
               CASE WHEN bool_or(isnan(metric_value)) THEN 'nan' ELSE min(metric_value) END,
               CASE WHEN bool_or(isnan(metric_value)) THEN 'nan' ELSE max(metric_value) END
        FROM {history} h SEMI JOIN unknown USING (run_id, metric_name)
        WHERE NOT EXISTS (SELECT 1 FROM rewinds w WHERE {rewound_points.published("h")})
        GROUP BY ALL
        """
    )
