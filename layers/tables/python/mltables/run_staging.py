"""Loads rows into temporary DuckDB tables from files of JSON lines: the changes in landing objects
(files of changes to publish), and the current experiments and runs from DynamoDB.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from mlcore.system_tables import landing_objects
from mlcore.system_tables.aws_account import account_id
from mlcore.system_tables.run_rows import ExperimentRow, RunRow
from mltables.snapshot import quoted

_LINES: Final = (
    "{x: 'VARCHAR', r: 'VARCHAR', k: 'VARCHAR', s: 'BIGINT', t: 'BIGINT', v: 'VARCHAR', "
    "i: 'BIGINT', d: 'VARCHAR', f: 'VARCHAR'}"
)
_RUNS: Final = (
    "{run_id: 'VARCHAR', experiment_id: 'VARCHAR', workspace_id: 'VARCHAR', run_name: 'VARCHAR', "
    "created_by: 'VARCHAR', status: 'VARCHAR', start_time: 'BIGINT', end_time: 'BIGINT', "
    "update_time: 'BIGINT', delete_time: 'BIGINT'}"
)
_ENTRIES: Final = "{run_id: 'VARCHAR', kind: 'VARCHAR', k: 'VARCHAR', v: 'VARCHAR'}"
_REWINDS: Final = (
    "{run_id: 'VARCHAR', rewound_at: 'BIGINT', after_step: 'BIGINT', metric_name: 'VARCHAR'}"
)
_MAPS: Final = ("params", "tags", "latest")
_EXPERIMENTS: Final = (
    "{experiment_id: 'VARCHAR', workspace_id: 'VARCHAR', name: 'VARCHAR', create_time: 'BIGINT', "
    "update_time: 'BIGINT', delete_time: 'BIGINT'}"
)


def load_landed(connection: duckdb.DuckDBPyConnection, keys: Sequence[str], folder: Path) -> None:
    """Creates DuckDB's temporary tables ``points`` (of metrics), ``refused`` (points whose requests
    were refused after they had been written), ``touched`` (runs), ``touched_experiments`` and
    ``changed_experiments`` from landing objects (files of changes to publish).
    ``changed_experiments`` has the experiments whose own item was written, ``touched_experiments``
    also those with changed runs. A point that was inserted repeatedly is one row, with its first
    and last time of insertion."""
    path = folder / "landed.ndjson"
    with path.open("wb") as file:
        file.writelines(landing_objects.read(keys))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE lines AS
        SELECT * FROM read_ndjson({quoted(str(path))}, columns={_LINES});
        CREATE OR REPLACE TEMP TABLE refused AS
        SELECT DISTINCT r AS run_id, f AS record_id, k AS metric_name, i AS insert_time
        FROM lines WHERE f IS NOT NULL;
        CREATE OR REPLACE TEMP TABLE points AS
        SELECT d AS record_id, any_value(x) AS experiment_id, any_value(r) AS run_id,
               any_value(k) AS metric_name, any_value(s) AS metric_step,
               any_value(t) AS metric_time, any_value(v)::DOUBLE AS metric_value,
               min(i) AS insert_time, max(i) AS last_insert_time
        FROM lines ANTI JOIN refused ON d = record_id AND i = insert_time
        WHERE d IS NOT NULL GROUP BY d;
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


def has_changed_experiments(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether one of the loaded landing objects (files of changes to publish) says that the item of
    an experiment was written or removed."""
    rows = connection.execute("SELECT 1 FROM changed_experiments LIMIT 1").fetchall()
    return bool(rows)


def load_experiments(
    connection: duckdb.DuckDBPyConnection, rows: Iterable[ExperimentRow], folder: Path
) -> None:
    """Creates the temporary table ``new_experiments`` with the given rows and the columns of
    ``experiments_latest``. ``folder`` gets a file that is deleted afterwards."""
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
    """Loads ``rows`` into temporary tables of DuckDB: ``new_runs`` (the columns of ``runs_latest``
    without ``aggregated_metrics``, and ``start_month``), ``latest`` (run, metric and latest value)
    and ``rewinds`` (deletions of points after a step, :mod:`mltables.rewound_points`)."""
    path, entries = folder / "runs.ndjson", folder / "entries.ndjson"
    rewound = folder / "rewinds.ndjson"
    with (
        path.open("w", encoding="ascii") as file,
        entries.open("w", encoding="ascii") as small,
        rewound.open("w", encoding="ascii") as rewinds,
    ):
        for row in rows:
            fields = row._asdict()
            # Map entries are separate lines: the size of a line is limited, that of a run is not.
            for kind in _MAPS:
                small.writelines(
                    _line({"run_id": row.run_id, "kind": kind, "k": key, "v": value})
                    for key, value in fields.pop(kind).items()
                )
            rewinds.writelines(
                _line(
                    {
                        "run_id": row.run_id,
                        "rewound_at": rewind.at,
                        "after_step": rewind.after_step,
                        "metric_name": key,
                    }
                )
                for rewind in fields.pop("rewinds")
                for key in rewind.keys or [None]
            )
            file.write(_line(fields))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE entries AS
        SELECT * FROM read_ndjson({quoted(str(entries))}, columns={_ENTRIES});
        CREATE OR REPLACE TEMP TABLE rewinds AS
        SELECT *, NULL::VARCHAR AS record_id
        FROM read_ndjson({quoted(str(rewound))}, columns={_REWINDS});
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
    for input_file in (path, entries, rewound):
        input_file.unlink()


def _entries(kind: str) -> str:
    """Returns a subquery with one list of pairs per run. The pairs are sorted by key, so that equal
    maps compare equal."""
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
