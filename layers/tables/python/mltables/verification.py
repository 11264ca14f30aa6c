"""Compares the published system tables (which SQL queries read), except the audit log, with the
DynamoDB table; writes nothing.

Changes that are not published yet (in the stream or in files that wait to be published) appear as
differences, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from mlcore.system_tables import experiment_source, run_source
from mltables import entity_verification, run_staging, trace_verification
from mltables.duckdb_connection import connect
from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.table_definitions import EXPERIMENTS, HISTORY, RUNS, TABLES, open_if_exists

TOGETHER: Final = 200
_COMPARED_COLUMNS: Final = (
    "account_id, update_time, delete_time, workspace_id, run_id, experiment_id, created_by, "
    "start_time, end_time, run_name, status, params, tags"
)


class Difference(NamedTuple):
    """A row that is ``missing`` from a system table, ``surplus`` there, or ``different``, compared
    with the DynamoDB table."""

    problem: str
    table: str
    name: str


def verify() -> Iterator[Difference]:
    with (
        Lake() as lake,
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        for table in TABLES:
            delta = open_if_exists(lake, table)
            rows = table.nothing
            if delta is not None:
                rows = Snapshot(lake, table, delta).source(connection)
            connection.execute(f"CREATE VIEW {table.name} AS SELECT {table.stored} FROM {rows}")
        yield from _Comparison(connection, Path(folder)).run()


class _Comparison:
    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self._connection, self._folder = connection, folder

    def run(self) -> Iterator[Difference]:
        stored = experiment_source.find_experiments(list(experiment_source.experiment_ids()))
        run_staging.load_experiments(
            self._connection, (experiment.row for experiment in stored.values()), self._folder
        )
        yield from self._compared(
            EXPERIMENTS.name, "experiment_id", "new_experiments", EXPERIMENTS.name
        )
        yield from self._workspaces()
        seen = "CREATE TEMP TABLE seen (run_id VARCHAR)"
        self._connection.execute(seen)
        for experiment_id, experiment in stored.items():
            runs = list(run_source.run_ids(experiment.experiment))
            for at in range(0, len(runs), TOGETHER):
                yield from self._runs(stored, experiment_id, runs[at : at + TOGETHER])
        for table in (RUNS.name, HISTORY.name):
            for (run_id,) in self._connection.execute(
                f"SELECT DISTINCT run_id FROM {table} ANTI JOIN seen USING (run_id)"
            ).fetchall():
                yield Difference("surplus", table, run_id)
        for difference in trace_verification.differences(self._connection, stored, self._folder):
            yield Difference(*difference)
        for difference in entity_verification.differences(self._connection, self._folder):
            yield Difference(*difference)

    def _runs(
        self, stored: dict[str, experiment_source.Stored], experiment_id: str, run_ids: list[str]
    ) -> Iterator[Difference]:
        places = [(experiment_id, run_id) for run_id in run_ids]
        run_staging.load_runs(self._connection, run_source.find_runs(places, stored), self._folder)
        self._connection.execute("INSERT INTO seen SELECT run_id FROM new_runs")
        listed = ", ".join(map(quoted, run_ids))
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE published AS
            SELECT * FROM {RUNS.name} WHERE run_id IN ({listed})
            """
        )
        yield from self._compared(RUNS.name, "run_id", "new_runs", "published", _COMPARED_COLUMNS)
        yield from self._metrics(listed)
        for run_id in run_ids:
            yield from self._points(experiment_id, run_id)

    def _compared(
        self, table: str, key: str, new: str, published: str, columns: str = ""
    ) -> Iterator[Difference]:
        columns = columns or EXPERIMENTS.names
        rows = self._connection.execute(
            f"""
            SELECT {key}, n.{key} IS NULL, p.{key} IS NULL
            FROM (SELECT {columns} FROM {new}) n
            FULL JOIN (SELECT {columns} FROM {published}) p USING ({key})
            WHERE n IS DISTINCT FROM p
            """
        ).fetchall()
        for name, surplus, missing in rows:
            problem = "surplus" if surplus else "missing" if missing else "different"
            yield Difference(problem, table, name)

    def _metrics(self, listed: str) -> Iterator[Difference]:
        """Compares ``aggregated_metrics`` with the runs' latest values and with the history."""
        rows = self._connection.execute(
            f"""
            WITH told AS (
                SELECT run_id, unnest(aggregated_metrics, recursive := true) FROM published
            ), reach AS (
                SELECT run_id, metric_name,
                       CASE WHEN bool_or(isnan(metric_value)) THEN 'nan'::DOUBLE
                            ELSE min(metric_value) END AS low,
                       CASE WHEN bool_or(isnan(metric_value)) THEN 'nan'::DOUBLE
                            ELSE max(metric_value) END AS high
                FROM {HISTORY.name} WHERE run_id IN ({listed}) GROUP BY ALL
            )
            SELECT DISTINCT run_id || ' ' || metric_name FROM latest
            FULL JOIN told USING (run_id, metric_name) LEFT JOIN reach USING (run_id, metric_name)
            WHERE latest.latest_value IS DISTINCT FROM told.latest_value
               OR told.min_value IS DISTINCT FROM reach.low
               OR told.max_value IS DISTINCT FROM reach.high
            """
        ).fetchall()
        for (name,) in rows:
            yield Difference("different", "aggregated_metrics", name)

    def _points(self, experiment_id: str, run_id: str) -> Iterator[Difference]:
        """Yields points that are missing or repeated in the history. Points that only the history
        has are no difference: it keeps points that DynamoDB has deleted."""
        published = self._connection.execute(
            f"SELECT record_id FROM {HISTORY.name} WHERE run_id = ?", [run_id]
        ).fetchall()
        known = {point for (point,) in published}
        if len(known) != len(published):
            yield Difference("surplus", HISTORY.name, run_id)
        missing = {point.record_id for point in run_source.points_of(experiment_id, run_id)} - known
        if missing:
            yield Difference("missing", HISTORY.name, f"{run_id}: {len(missing)} points")

    def _workspaces(self) -> Iterator[Difference]:
        """Yields runs whose points have another workspace than their experiment."""
        misplaced = self._connection.execute(
            f"""
            SELECT run_id, count(*) FROM {HISTORY.name} h JOIN new_experiments n
            USING (experiment_id) WHERE h.workspace_id <> n.workspace_id GROUP BY run_id ORDER BY 1
            """
        ).fetchall()
        for run_id, count in misplaced:
            yield Difference(
                "different", HISTORY.name, f"{run_id}: {count} points in another workspace"
            )
