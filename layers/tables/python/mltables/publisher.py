"""The publisher: brings the tables up to what landed, then takes away what it has consumed.

A step opens the three tables, reads the landing objects and *then* what the table in DynamoDB says
of the experiments and runs that they name, and commits each table on condition that no other
publisher has committed since it was opened: Delta refuses a second transaction of one writer. So
rows never go back to an older state, whoever else publishes, and a step that is killed anywhere is
repeated from its landing objects:

* a point that is in the history is not appended again (its ``record_id`` is its identity),
* the smallest and greatest value of a metric are joined with those of before,
* all else is what the table says.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import duckdb
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from mlcore.system_tables import landing, source
from mltables import staging
from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.tables import (
    AGGREGATE,
    EXPERIMENTS,
    HISTORY,
    RUNS,
    WRITER,
    opened,
    writer,
)

STEP_BYTES: Final = 4 << 20
"""Compressed landing objects that one step takes: some 80,000 points, so that memory is bounded."""

RUNS_TOGETHER: Final = 2000
"""Runs that one commit changes."""

NAMED_TOGETHER: Final = 500
"""Literals in a condition."""

ATTEMPTS: Final = 20
MEMORY: Final = "200MB"


class Published(NamedTuple):
    """What was done: landing objects consumed, rows appended to the history, runs and experiments
    written or removed."""

    objects: int = 0
    points: int = 0
    runs: int = 0
    experiments: int = 0


def publish(seconds: float = float("inf")) -> Published:
    """Publishes what has landed; begins no new step after some seconds. Ends at once when nothing
    waits.

    Raises:
        CommitFailedError: others committed again and again.
    """
    end = time.monotonic() + seconds
    total = Published()
    while keys := [key for key, _ in landing.waiting(STEP_BYTES)]:
        done = _repeated(keys)
        total = Published(*(a + b for a, b in zip(total, done, strict=True)))
        if time.monotonic() >= end:
            break
    return total


def _repeated(keys: list[str]) -> Published:
    for attempt in range(ATTEMPTS):
        try:
            return _step(keys)
        except CommitFailedError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(0.05 * (attempt + 1))
    raise AssertionError


def _step(keys: list[str]) -> Published:
    lake = Lake()
    # Opened before anything is read: what is committed is never older than what is replaced.
    snapshots = {
        table.name: Snapshot(lake, table, opened(lake, table))
        for table in (HISTORY, RUNS, EXPERIMENTS)
    }
    with (
        tempfile.TemporaryDirectory(dir=lake.scratch) as folder,
        connected(Path(folder)) as connection,
    ):
        step = _Step(connection, snapshots, Path(folder))
        staging.load_landed(connection, keys, Path(folder))
        done = step.run()
    landing.remove(keys)
    return done._replace(objects=len(keys))


def connected(folder: Path, memory: str = MEMORY) -> duckdb.DuckDBPyConnection:
    """A database in memory that spills into a folder and speaks of time in UTC."""
    connection = duckdb.connect(
        config={
            "memory_limit": memory,
            "threads": 2,
            "temp_directory": str(folder / "spill"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return connection


class _Step:
    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        snapshots: dict[str, Snapshot],
        folder: Path,
    ) -> None:
        self._connection, self._folder = connection, folder
        self._history, self._runs, self._experiments = (
            snapshots[table.name] for table in (HISTORY, RUNS, EXPERIMENTS)
        )

    def run(self) -> Published:
        named = self._column("SELECT experiment_id FROM touched_experiments ORDER BY 1")
        stored = source.find_experiments(named)
        staging.load_experiments(
            self._connection, (one.row for one in stored.values()), self._folder
        )
        old = self._experiments.source(self._connection)
        self._connection.execute(
            f"CREATE TEMP TABLE old_experiments AS SELECT {EXPERIMENTS.names} FROM {old}"
        )
        self._touch_runs_of_moved()
        places = self._connection.execute(
            "SELECT experiment_id, run_id FROM touched ORDER BY ALL"
        ).fetchall()
        points = changed = 0
        for at in range(0, len(places), RUNS_TOGETHER):
            some = places[at : at + RUNS_TOGETHER]
            staging.load_runs(self._connection, source.find_runs(some, stored), self._folder)
            self._connection.execute("CREATE OR REPLACE TEMP TABLE part (run_id VARCHAR)")
            self._connection.executemany(
                "INSERT INTO part VALUES (?)", [[run_id] for _, run_id in some]
            )
            points += self._publish_points()
            changed += self._publish_runs()
        self._move_points()
        return Published(0, points, changed, self._publish_experiments())

    # -------------------------------------------------------------- experiments

    def _touch_runs_of_moved(self) -> None:
        """Runs follow their experiment when it is deleted, restored, moved or gone."""
        moved = self._column(
            """
            SELECT experiment_id FROM touched_experiments
            LEFT JOIN new_experiments n USING (experiment_id)
            LEFT JOIN old_experiments o USING (experiment_id)
            WHERE n.name IS NULL OR o.name IS NULL OR n.workspace_id <> o.workspace_id
               OR n.delete_time IS DISTINCT FROM o.delete_time
            """
        )
        for some in _chunks(moved):
            old = self._runs.source(self._connection, _between("experiment_id", some))
            self._connection.execute(
                f"""
                INSERT INTO touched SELECT experiment_id, run_id FROM {old}
                WHERE experiment_id IN ({_list(some)})
                EXCEPT SELECT experiment_id, run_id FROM touched
                """
            )

    def _publish_experiments(self) -> int:
        changed = self._number(
            """
            SELECT count(*) FROM touched_experiments
            LEFT JOIN new_experiments n USING (experiment_id)
            LEFT JOIN old_experiments o USING (experiment_id)
            WHERE n IS DISTINCT FROM o
            """
        )
        if changed:
            rows = self._connection.sql(
                f"""
                SELECT {EXPERIMENTS.names} FROM old_experiments
                ANTI JOIN touched_experiments USING (experiment_id)
                UNION ALL SELECT {EXPERIMENTS.names} FROM new_experiments
                """
            )
            self._write(self._experiments, rows, "overwrite")
        return changed

    # -------------------------------------------------------------------- points

    def _publish_points(self) -> int:
        """Appends the points that are new, of runs that exist, and removes those of runs that do
        not."""
        gone = self._column("SELECT run_id FROM part ANTI JOIN new_runs USING (run_id)")
        self._remove(self._history, gone)
        known = self._history.source(self._connection, self._overlapping("points"))
        self._connection.execute(
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
        count = self._number("SELECT count(*) FROM new_points")
        if count:
            rows = self._connection.sql(
                f"SELECT {HISTORY.stored} FROM new_points "
                "ORDER BY insert_date, experiment_id, run_id, metric_name, metric_step, metric_time"
            )
            self._write(self._history, rows, "append")
        return count

    def _move_points(self) -> None:
        """The history of an experiment that is in another workspace now says so."""
        moved = self._connection.execute(
            """
            SELECT experiment_id, n.workspace_id FROM new_experiments n
            JOIN old_experiments o USING (experiment_id) WHERE n.workspace_id <> o.workspace_id
            """
        ).fetchall()
        for experiment_id, workspace in moved:
            self._history.delta.update(
                updates={"workspace_id": quoted(workspace)},
                predicate=f"experiment_id = {quoted(experiment_id)} "
                f"AND workspace_id <> {quoted(workspace)}",
                writer_properties=writer(HISTORY),
                commit_properties=next_commit(self._history.delta),
            )

    # ---------------------------------------------------------------------- runs

    def _publish_runs(self) -> int:
        gone = self._column("SELECT run_id FROM part ANTI JOIN new_runs USING (run_id)")
        removed = self._remove(self._runs, gone)
        old = self._runs.source(self._connection, self._overlapping("new_runs"))
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE old_runs AS SELECT {RUNS.stored} FROM {old}
            WHERE run_id IN (SELECT run_id FROM new_runs)
            """
        )
        self._aggregate()
        self._connection.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE changed_runs AS
            SELECT {RUNS.stored} FROM aggregated_runs EXCEPT ALL SELECT {RUNS.stored} FROM old_runs
            """
        )
        count = self._number("SELECT count(*) FROM changed_runs")
        if count:
            self._merge()
        return removed + count

    def _aggregate(self) -> None:
        """``aggregated_runs``: the latest value of a metric as the run itself has it, the smallest
        and the greatest of all that was published before, of what landed, and of the latest; NaN
        among them makes both NaN."""
        self._connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE reach AS
            SELECT run_id, one.metric_name, one.min_value, one.max_value
            FROM (SELECT run_id, unnest(aggregated_metrics) AS one FROM old_runs)
            UNION ALL
            SELECT run_id, metric_name,
                   CASE WHEN bool_or(isnan(metric_value)) THEN 'nan' ELSE min(metric_value) END,
                   CASE WHEN bool_or(isnan(metric_value)) THEN 'nan' ELSE max(metric_value) END
            FROM points SEMI JOIN new_runs USING (run_id) GROUP BY ALL
            """
        )
        self._reach_of_history()
        self._connection.execute(
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

    def _reach_of_history(self) -> None:
        """Adds to ``reach`` what only the history tells: of a run whose points were published
        before the run itself showed them."""
        self._connection.execute(
            "CREATE OR REPLACE TEMP TABLE unknown AS "
            "SELECT run_id, metric_name FROM latest ANTI JOIN reach USING (run_id, metric_name)"
        )
        if not self._number("SELECT count(*) FROM unknown"):
            return
        history = self._history.source(self._connection, self._overlapping("unknown"))
        self._connection.execute(
            f"""
            INSERT INTO reach
            SELECT run_id, metric_name,
                   CASE WHEN bool_or(isnan(metric_value)) THEN 'nan' ELSE min(metric_value) END,
                   CASE WHEN bool_or(isnan(metric_value)) THEN 'nan' ELSE max(metric_value) END
            FROM {history} SEMI JOIN unknown USING (run_id, metric_name) GROUP BY ALL
            """
        )

    def _merge(self) -> None:
        """Replaces runs by their new rows. Those whose month of start is another than before lie in
        another partition, so their old rows are removed first."""
        moved = self._column(
            """
            SELECT run_id FROM changed_runs c JOIN old_runs o USING (run_id)
            WHERE c.start_month <> o.start_month
            """
        )
        self._remove(self._runs, moved)
        months = self._column("SELECT DISTINCT start_month FROM changed_runs ORDER BY 1")
        rows = self._connection.sql(f"SELECT {RUNS.stored} FROM changed_runs ORDER BY run_id")
        self._runs.delta.merge(
            rows,
            f"t.start_month IN ({_list(months)}) AND t.start_month = s.start_month "
            "AND t.run_id = s.run_id",
            source_alias="s",
            target_alias="t",
            writer_properties=writer(RUNS),
            commit_properties=next_commit(self._runs.delta),
        ).when_matched_update_all().when_not_matched_insert_all().execute()

    # ---------------------------------------------------------------------- both

    def _remove(self, snapshot: Snapshot, run_ids: list[str]) -> int:
        """Removes the rows of runs; answers how many runs had any."""
        removed = 0
        for some in _chunks(run_ids):
            source_ = snapshot.source(self._connection, _between("run_id", some))
            there = self._column(
                f"SELECT DISTINCT run_id FROM {source_} WHERE run_id IN ({_list(some)})"
            )
            if there:
                snapshot.delta.delete(
                    f"run_id IN ({_list(there)})",
                    writer_properties=writer(snapshot.table),
                    commit_properties=next_commit(snapshot.delta),
                )
            removed += len(there)
        return removed

    def _write(
        self,
        snapshot: Snapshot,
        rows: duckdb.DuckDBPyRelation,
        mode: Literal["append", "overwrite"],
    ) -> None:
        write_deltalake(
            snapshot.delta,
            rows,
            mode=mode,
            writer_properties=writer(snapshot.table),
            commit_properties=next_commit(snapshot.delta),
        )

    def _overlapping(self, table: str) -> str:
        """The files that may hold rows of the runs of a table here."""
        first, last = self._connection.execute(
            f"SELECT min(run_id), max(run_id) FROM {table}"
        ).fetchall()[0]
        if first is None:
            return "false"
        return _between("run_id", [first, last])

    def _column(self, query: str) -> list[str]:
        return [value for (value,) in self._connection.execute(query).fetchall()]

    def _number(self, query: str) -> int:
        number: int = self._connection.execute(query).fetchall()[0][0]
        return number


def next_commit(delta: DeltaTable) -> CommitProperties:
    """A commit that no other publisher may have come before."""
    number = (delta.transaction_version(WRITER) or 0) + 1
    return CommitProperties(app_transactions=[Transaction(WRITER, number)])


def _between(column: str, values: Iterable[str]) -> str:
    """On files: which may hold rows with these values. Statistics may be cut short, so that the
    greatest value is compared by its beginning."""
    ordered = sorted(values)
    first, last = ordered[0], ordered[-1]
    low, high = f'"min.{column}"', f'"max.{column}"'
    return (
        f"({low} IS NULL OR {high} IS NULL OR ({low} <= {quoted(last)} AND "
        f"({high} >= {quoted(first)} OR starts_with({quoted(first)}, {high}))))"
    )


def _list(values: Iterable[str]) -> str:
    return ", ".join(quoted(value) for value in values)


def _chunks(values: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(values), NAMED_TOGETHER):
        yield values[at : at + NAMED_TOGETHER]
