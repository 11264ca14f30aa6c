"""One step of the publisher for experiments and runs: makes rows from landing objects (files of
changes to publish) and DynamoDB items, and commits them table by table. ``publisher`` decides when
to run a step and whether to repeat it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from mlcore.system_tables import experiment_source, run_source
from mltables import (
    history_publishing,
    metric_aggregates,
    rewound_points,
    row_removal,
    run_publishing,
    run_staging,
    trace_publishing,
)
from mltables.lake import Lake
from mltables.snapshot import Snapshot
from mltables.table_definitions import EXPERIMENTS, HISTORY, OF_TRACES, RUNS
from mltables.writable_table import WritableTable

RUNS_TOGETHER: Final = 5000
"""Most runs that one commit changes."""


class Published(NamedTuple):
    """Counts of what a publication did in the system tables: landing objects (files of changes)
    that were published and deleted; metric points appended to the history; rows of runs,
    experiments and traces written or removed; audited requests appended; rows of other entities
    written or removed."""

    objects: int = 0
    points: int = 0
    runs: int = 0
    experiments: int = 0
    traces: int = 0
    audited: int = 0
    entities: int = 0


class PublishStep:
    """One step of the publisher for experiments and runs, which works on an open snapshot of each
    system table."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        lake: Lake,
        snapshots: dict[str, Snapshot],
        folder: Path,
    ) -> None:
        """Args:
        snapshots: the open snapshots by table name. Those of the trace tables may be missing if
            no experiment has changed.
        """
        self._connection, self._folder = connection, folder
        self._history, self._runs, self._experiments = (
            WritableTable(connection, lake, snapshots[table.name], folder)
            for table in (HISTORY, RUNS, EXPERIMENTS)
        )
        self._of_traces = [
            WritableTable(connection, lake, snapshots[table.name], folder)
            for table in OF_TRACES
            if table.name in snapshots
        ]

    def run(self) -> Published:
        """Publishes the changes of experiments and runs that ``run_staging.load_landed`` has loaded
        into temporary tables.

        Raises:
            CommitFailedError: another publisher committed first; the caller repeats the step.
        """
        named = [
            name
            for (name,) in self._connection.execute(
                "SELECT experiment_id FROM touched_experiments ORDER BY 1"
            ).fetchall()
        ]
        stored = experiment_source.find_experiments(named)
        run_staging.load_experiments(
            self._connection, (name.row for name in stored.values()), self._folder
        )
        self._connection.execute(
            "CREATE TEMP TABLE old_experiments AS "
            f"SELECT {EXPERIMENTS.names} FROM {self._experiments.source()}"
        )
        self._touch_runs_of_moved(
            [name for name, experiment in stored.items() if experiment.experiment.epoch]
        )
        places = self._connection.execute(
            "SELECT experiment_id, run_id FROM touched ORDER BY ALL"
        ).fetchall()
        appended = changed = 0
        for at in range(0, len(places), RUNS_TOGETHER):
            some = places[at : at + RUNS_TOGETHER]
            run_staging.load_runs(
                self._connection, run_source.find_runs(some, stored), self._folder
            )
            self._connection.execute(
                f"""
                CREATE OR REPLACE TEMP TABLE part AS
                SELECT run_id FROM touched ORDER BY experiment_id, run_id
                LIMIT {RUNS_TOGETHER} OFFSET {at};
                CREATE OR REPLACE TEMP TABLE gone AS
                SELECT run_id FROM part ANTI JOIN new_runs USING (run_id)
                """
            )
            rewound_points.add_refused(self._connection)
            appended += history_publishing.append_points(self._connection, self._history)
            files = run_publishing.load_published_runs(self._connection, self._runs)
            metric_aggregates.aggregate_metrics(
                self._connection,
                lambda table: self._history.source(self._history.overlapping(table, "run_id")),
            )
            changed += run_publishing.publish(self._connection, self._runs, files)
        row_removal.correct_workspaces(self._connection, self._history)
        trace_publishing.follow_experiments(self._connection, self._of_traces)
        experiments = self._publish_experiments()
        for table in (self._history, self._runs, self._experiments, *self._of_traces):
            table.finish_step()
        return Published(0, appended, changed, experiments)

    def _touch_runs_of_moved(self, ever_deleted: list[str]) -> None:
        """Adds to ``touched`` the runs of experiments that were deleted, restored, moved or
        removed. Creates ``placed`` (the experiments whose published rows may have a wrong
        workspace) and ``gone_experiments`` (those that were removed).

        A killed step can leave rows with a workspace that ``experiments_latest`` never had. The
        landing objects of the move, or of the move back, still name the experiment. So for each
        experiment that a landing object reports as written, the workspaces of the rows themselves
        are compared. In the same way a killed step can leave runs published as deleted, although
        their experiment has been restored. So if an experiment was written, exists and was ever
        deleted, all of its runs that are published as deleted are read again. The times of the rows
        cannot narrow this down: another publisher may publish the restored experiment before this
        one publishes runs that it has read as deleted.

        Args:
            ever_deleted: the experiments that were deleted at least once.
        """
        self._connection.execute(
            """
            CREATE TEMP TABLE moved AS
            SELECT experiment_id FROM touched_experiments
            LEFT JOIN new_experiments n USING (experiment_id)
            LEFT JOIN old_experiments o USING (experiment_id)
            WHERE n.name IS NULL OR o.name IS NULL OR n.workspace_id <> o.workspace_id
               OR n.delete_time IS DISTINCT FROM o.delete_time
            """
        )
        self._connection.execute(
            """
            CREATE TEMP TABLE placed AS
            SELECT experiment_id, n.workspace_id AS destination FROM new_experiments n
            LEFT JOIN old_experiments o USING (experiment_id)
            WHERE experiment_id IN (SELECT experiment_id FROM changed_experiments)
               OR n.workspace_id <> o.workspace_id
            """
        )
        self._connection.execute(
            """
            CREATE TEMP TABLE gone_experiments AS
            SELECT experiment_id FROM touched_experiments ANTI JOIN new_experiments
            USING (experiment_id)
            """
        )
        self._connection.execute(
            """
            CREATE TEMP TABLE restored AS
            SELECT experiment_id FROM new_experiments SEMI JOIN changed_experiments
            USING (experiment_id)
            WHERE delete_time IS NULL AND experiment_id IN (SELECT unnest(?::VARCHAR[]))
            """,
            [ever_deleted],
        )
        old = self._runs.source(self._runs.overlapping("moved", "experiment_id"))
        deleted = self._runs.source(self._runs.overlapping("restored", "experiment_id"))
        maybe = self._runs.source(self._runs.misplaced("placed"))
        self._connection.execute(
            f"""
            INSERT INTO touched (
                SELECT experiment_id, run_id FROM {old}
                WHERE experiment_id IN (SELECT experiment_id FROM moved)
                UNION
                SELECT experiment_id, run_id FROM {deleted}
                WHERE delete_time IS NOT NULL
                  AND experiment_id IN (SELECT experiment_id FROM restored)
                UNION
                SELECT experiment_id, run_id FROM {maybe} JOIN placed USING (experiment_id)
                WHERE workspace_id <> destination
            )
            EXCEPT SELECT experiment_id, run_id FROM touched
            """
        )

    def _publish_experiments(self) -> int:
        """Replaces the whole table, which is small, in one commit. Returns the number of
        experiments that changed."""
        changed: int = self._connection.execute(
            """
            SELECT count(*) FROM touched_experiments
            LEFT JOIN new_experiments n USING (experiment_id)
            LEFT JOIN old_experiments o USING (experiment_id)
            WHERE n IS DISTINCT FROM o
            """
        ).fetchall()[0][0]
        if changed:
            change = self._experiments.change()
            change.remove(self._experiments.names())
            change.add(
                f"""
                SELECT {EXPERIMENTS.names} FROM old_experiments
                ANTI JOIN touched_experiments USING (experiment_id)
                UNION ALL SELECT {EXPERIMENTS.names} FROM new_experiments ORDER BY experiment_id
                """
            )
            change.commit()
        return changed
