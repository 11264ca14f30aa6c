"""One step of the publisher: what landed and what the table in DynamoDB says become rows, which are
committed table by table. It decides neither when, nor whether to repeat."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from mlcore.system_tables import source
from mltables import aggregates, points, run_files, staging
from mltables.lake import Lake
from mltables.snapshot import Snapshot
from mltables.tables import EXPERIMENTS, HISTORY, RUNS
from mltables.target import Target

RUNS_TOGETHER: Final = 5000
"""Runs that one commit changes."""


class Published(NamedTuple):
    """What was done: landing objects consumed, rows appended to the history, runs and experiments
    written or removed."""

    objects: int = 0
    points: int = 0
    runs: int = 0
    experiments: int = 0


class Step:
    """One step of the publisher: what it writes and in which order."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        lake: Lake,
        snapshots: dict[str, Snapshot],
        folder: Path,
    ) -> None:
        self._connection, self._folder = connection, folder
        self._history, self._runs, self._experiments = (
            Target(connection, lake, snapshots[table.name], folder)
            for table in (HISTORY, RUNS, EXPERIMENTS)
        )

    def run(self) -> Published:
        """Publishes what ``staging.load_landed`` has staged.

        Raises:
            CommitFailedError: another publisher came first; the step is to be repeated.
        """
        named = [
            one
            for (one,) in self._connection.execute(
                "SELECT experiment_id FROM touched_experiments ORDER BY 1"
            ).fetchall()
        ]
        stored = source.find_experiments(named)
        staging.load_experiments(
            self._connection, (one.row for one in stored.values()), self._folder
        )
        self._connection.execute(
            "CREATE TEMP TABLE old_experiments AS "
            f"SELECT {EXPERIMENTS.names} FROM {self._experiments.source()}"
        )
        self._touch_runs_of_moved()
        places = self._connection.execute(
            "SELECT experiment_id, run_id FROM touched ORDER BY ALL"
        ).fetchall()
        appended = changed = 0
        for at in range(0, len(places), RUNS_TOGETHER):
            some = places[at : at + RUNS_TOGETHER]
            staging.load_runs(self._connection, source.find_runs(some, stored), self._folder)
            self._connection.execute(
                f"""
                CREATE OR REPLACE TEMP TABLE part AS
                SELECT run_id FROM touched ORDER BY experiment_id, run_id
                LIMIT {RUNS_TOGETHER} OFFSET {at};
                CREATE OR REPLACE TEMP TABLE gone AS
                SELECT run_id FROM part ANTI JOIN new_runs USING (run_id)
                """
            )
            appended += points.publish(self._connection, self._history)
            files = run_files.load_old(self._connection, self._runs)
            aggregates.make(
                self._connection,
                lambda table: self._history.source(self._history.overlapping(table, "run_id")),
            )
            changed += run_files.publish(self._connection, self._runs, files)
        points.move(self._connection, self._history)
        return Published(0, appended, changed, self._publish_experiments())

    def _touch_runs_of_moved(self) -> None:
        """Adds to ``touched`` the runs of experiments that were deleted, restored, moved or are
        gone, and makes ``placed``: experiments whose rows may be in another workspace.

        A killed step can leave rows in a workspace that ``experiments_latest`` never had. Its
        landing objects, or those of the move back, name the experiment, so the rows themselves are
        compared for each experiment that a landing object says was written.
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
        old = self._runs.source(self._runs.overlapping("moved", "experiment_id"))
        maybe = self._runs.source(self._runs.misplaced("placed"))
        self._connection.execute(
            f"""
            INSERT INTO touched (
                SELECT experiment_id, run_id FROM {old}
                WHERE experiment_id IN (SELECT experiment_id FROM moved)
                UNION
                SELECT experiment_id, run_id FROM {maybe} JOIN placed USING (experiment_id)
                WHERE workspace_id <> destination
            )
            EXCEPT SELECT experiment_id, run_id FROM touched
            """
        )

    def _publish_experiments(self) -> int:
        """One commit that replaces the whole table, which is small."""
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
