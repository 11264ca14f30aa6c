"""One step of the publisher: what landed and what the table says become rows, which are committed
table by table; decides nothing about when, or again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import duckdb
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from mlcore.system_tables import source
from mltables import aggregates, staging
from mltables.snapshot import Snapshot, quoted
from mltables.tables import EXPERIMENTS, HISTORY, RUNS, WRITER, writer

RUNS_TOGETHER: Final = 2000
"""Runs that one commit changes."""

NAMED_TOGETHER: Final = 500
"""Literals in a condition."""


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
        aggregates.make(
            self._connection,
            lambda table: self._history.source(self._connection, self._overlapping(table)),
        )
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
