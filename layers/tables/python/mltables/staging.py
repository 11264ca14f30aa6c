"""Lines of JSON, and what a DuckDB connection makes of them: what waits in the landing folder, and
the rows that the table has now."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from mlcore.system_tables import landing
from mlcore.system_tables.location import account_id
from mlcore.system_tables.rows import ExperimentRow, RunRow
from mltables.snapshot import quoted

_LINES: Final = (
    "{x: 'VARCHAR', r: 'VARCHAR', k: 'VARCHAR', s: 'BIGINT', t: 'BIGINT', v: 'VARCHAR', "
    "i: 'BIGINT', d: 'VARCHAR'}"
)
_RUNS: Final = (
    "{run_id: 'VARCHAR', experiment_id: 'VARCHAR', workspace_id: 'VARCHAR', run_name: 'VARCHAR', "
    "created_by: 'VARCHAR', status: 'VARCHAR', start_time: 'BIGINT', end_time: 'BIGINT', "
    "update_time: 'BIGINT', delete_time: 'BIGINT'}"
)
_ENTRIES: Final = "{run_id: 'VARCHAR', kind: 'VARCHAR', k: 'VARCHAR', v: 'VARCHAR'}"
_MAPS: Final = ("params", "tags", "latest")
_EXPERIMENTS: Final = (
    "{experiment_id: 'VARCHAR', workspace_id: 'VARCHAR', name: 'VARCHAR', create_time: 'BIGINT', "
    "update_time: 'BIGINT', delete_time: 'BIGINT'}"
)


def load_landed(connection: duckdb.DuckDBPyConnection, keys: Sequence[str], folder: Path) -> None:
    """Makes ``points``, ``touched`` (runs), ``touched_experiments`` and ``changed_experiments`` of
    landing objects. The last holds the experiments that were written themselves, not only their
    runs. A point that is there more than once stays as it was inserted first."""
    path = folder / "landed.ndjson"
    with path.open("wb") as file:
        file.writelines(landing.read(keys))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE lines AS
        SELECT * FROM read_ndjson({quoted(str(path))}, columns={_LINES});
        CREATE OR REPLACE TEMP TABLE points AS
        SELECT d AS record_id, any_value(x) AS experiment_id, any_value(r) AS run_id,
               any_value(k) AS metric_name, any_value(s) AS metric_step,
               any_value(t) AS metric_time, any_value(v)::DOUBLE AS metric_value,
               min(i) AS insert_time
        FROM lines WHERE d IS NOT NULL GROUP BY d;
        CREATE OR REPLACE TEMP TABLE touched AS
        SELECT DISTINCT x AS experiment_id, r AS run_id FROM lines WHERE r IS NOT NULL;
        CREATE OR REPLACE TEMP TABLE touched_experiments AS
        SELECT DISTINCT x AS experiment_id FROM lines WHERE x IS NOT NULL;
        CREATE OR REPLACE TEMP TABLE changed_experiments AS
        SELECT DISTINCT x AS experiment_id FROM lines WHERE x IS NOT NULL AND r IS NULL;
        DROP TABLE lines
        """
    )
    path.unlink()


def load_experiments(
    connection: duckdb.DuckDBPyConnection, rows: Iterable[ExperimentRow], folder: Path
) -> None:
    """Makes ``new_experiments``, in the columns of ``experiments_latest``."""
    path = folder / "experiments.ndjson"
    with path.open("w", encoding="ascii") as file:
        file.writelines(_line(row._asdict()) for row in rows)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE new_experiments AS
        SELECT {quoted(account_id())} AS account_id, {_time("update_time")}, {_time("delete_time")},
               experiment_id, workspace_id, name, {_time("create_time")}
        FROM read_ndjson({quoted(str(path))}, columns={_EXPERIMENTS})
        """
    )
    path.unlink()


def load_runs(connection: duckdb.DuckDBPyConnection, rows: Iterable[RunRow], folder: Path) -> None:
    """Makes ``new_runs``: the columns of ``runs_latest`` but what is told of metrics, and
    ``start_month``; and ``latest``: run, metric and its latest value."""
    path, entries = folder / "runs.ndjson", folder / "entries.ndjson"
    with path.open("w", encoding="ascii") as file, entries.open("w", encoding="ascii") as small:
        for row in rows:
            fields = row._asdict()
            # Entries are lines of their own, for a line has a longest size and a run has none.
            for kind in _MAPS:
                small.writelines(
                    _line({"run_id": row.run_id, "kind": kind, "k": key, "v": value})
                    for key, value in fields.pop(kind).items()
                )
            file.write(_line(fields))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE entries AS
        SELECT * FROM read_ndjson({quoted(str(entries))}, columns={_ENTRIES});
        CREATE OR REPLACE TEMP TABLE latest AS
        SELECT run_id, k AS metric_name, v::DOUBLE AS latest_value
        FROM entries WHERE kind = 'latest';
        CREATE OR REPLACE TEMP TABLE new_runs AS
        SELECT {quoted(account_id())} AS account_id, {_time("update_time")}, {_time("delete_time")},
               workspace_id, run_id, experiment_id, created_by, {_time("start_time")},
               {_time("end_time")}, run_name, status,
               {_map("params")}, {_map("tags")},
               strftime(make_timestamp(start_time * 1000), '%Y-%m') AS start_month
        FROM read_ndjson({quoted(str(path))}, columns={_RUNS})
        LEFT JOIN {_entries("params")} USING (run_id) LEFT JOIN {_entries("tags")} USING (run_id);
        DROP TABLE entries
        """
    )
    path.unlink()
    entries.unlink()


def _entries(kind: str) -> str:
    """One list of pairs for each run, in the order of the keys: equal maps are equal rows."""
    return (
        f"(SELECT run_id, list({{k: k, v: v}} ORDER BY k) AS {kind} FROM entries "
        f"WHERE kind = '{kind}' GROUP BY run_id) {kind}_"
    )


def _map(kind: str) -> str:
    return f"map_from_entries(coalesce({kind}_.{kind}, [])) AS {kind}"


def _time(name: str) -> str:
    return f"make_timestamp({name} * 1000)::TIMESTAMPTZ AS {name}"


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields) + "\n"
