"""Loads traces into temporary DuckDB tables: from landing objects (files of changes to publish)
which traces have changed, and from DynamoDB their current state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from mlcore.repos.traces.traces import StoredTrace
from mlcore.system_tables import landing_objects
from mlcore.system_tables.aws_account import account_id
from mlcore.system_tables.trace_rows import rows_of
from mltables.snapshot import quoted
from mltables.table_columns import Table
from mltables.table_definitions import ASSESSMENTS, TRACES

_LINES: Final = (
    "{n: 'BIGINT', x: 'VARCHAR', t: 'VARCHAR', m: 'BIGINT[]', gone: 'BOOLEAN', made: 'BOOLEAN'}"
)
_ENTRIES: Final = "{n: 'BIGINT', kind: 'VARCHAR', k: 'VARCHAR', v: 'VARCHAR'}"
_MAPS: Final = ("trace_metadata", "tags")
_READ_AS: Final = {"TIMESTAMP WITH TIME ZONE": "BIGINT"}
"""Types of the columns in the staged files, where these are not the table's."""


def load_landed(connection: duckdb.DuckDBPyConnection, keys: Sequence[str], folder: Path) -> None:
    """Creates two temporary tables from landing objects (files of changes to publish):
    ``named_traces`` (experiment_id, trace_id, gone, anywhere, first_time), the changed traces, and
    ``named_times`` (experiment_id, trace_id, day, ms, last), the request times under which their
    published rows may be found. ``gone`` says that a request deleted the trace at some time,
    ``anywhere`` that its published rows may have any time. ``first_time`` is its earliest named
    request time in milliseconds since 1970; NULL if none is named.

    ``last`` marks the times that the line of a trace's deletion names: if the published rows do not
    have this time, a step searches all files for them. It is not set if the first line about the
    trace is that of its creation, because then the lines contain all times that the trace has
    had."""
    path = folder / "traces-landed.ndjson"
    with path.open("wb") as file:
        for number, content in enumerate(landing_objects.read(keys)):
            # An object has one line for a trace, so this is the order of the lines of each trace.
            file.write(content.replace(b'{"x": ', b'{"n": %d, "x": ' % number))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE lines AS
        SELECT x AS experiment_id, t AS trace_id, m, gone,
               coalesce(first(made) OVER (PARTITION BY x, t ORDER BY n), false) AS from_creation
        FROM read_ndjson({quoted(str(path))}, columns={_LINES});
        CREATE OR REPLACE TEMP TABLE named_traces AS
        SELECT experiment_id, trace_id, coalesce(bool_or(gone), false) AS gone,
               bool_or(m IS NULL) AS anywhere, min(list_min(m)) AS first_time
        FROM lines GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE named_times AS
        SELECT experiment_id, trace_id, {_day("ms")} AS day, ms, bool_or(last) AS last
        FROM (
            SELECT experiment_id, trace_id, unnest(m) AS ms,
                   coalesce(gone AND NOT from_creation, false) AS last
            FROM lines
        ) GROUP BY ALL;
        DROP TABLE lines
        """
    )
    path.unlink()


def load_traces(
    connection: duckdb.DuckDBPyConnection, stored: Iterable[StoredTrace], folder: Path
) -> None:
    """Creates the temporary tables ``new_traces`` and ``new_assessments`` from the traces in
    ``stored``, with all stored columns of ``traces`` and ``assessments``. ``folder`` gets files
    that are deleted afterwards."""
    traces, entries, assessments = (
        folder / f"{name}.ndjson" for name in ("traces", "trace-entries", "assessments")
    )
    with (
        traces.open("w", encoding="ascii") as file,
        entries.open("w", encoding="ascii") as small,
        assessments.open("w", encoding="ascii") as judged,
    ):
        for number, trace in enumerate(stored):
            row, its_assessments = rows_of(trace)
            fields = row._asdict()
            # Map entries are separate lines: the size of a line is limited, that of a trace is not.
            for kind in _MAPS:
                small.writelines(
                    _line({"n": number, "kind": kind, "k": key, "v": value})
                    for key, value in fields.pop(kind).items()
                )
            file.write(_line({"n": number, **fields}))
            judged.writelines(_line(judgement._asdict()) for judgement in its_assessments)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE entries AS
        SELECT * FROM read_ndjson({quoted(str(entries))}, columns={_ENTRIES});
        CREATE OR REPLACE TEMP TABLE new_traces AS
        SELECT {_selected(TRACES, _MAPS)}
        FROM read_ndjson({quoted(str(traces))}, columns={_columns(TRACES, "n: 'BIGINT', ", _MAPS)})
        LEFT JOIN {_entries("trace_metadata")} USING (n) LEFT JOIN {_entries("tags")} USING (n);
        CREATE OR REPLACE TEMP TABLE new_assessments AS
        SELECT {_selected(ASSESSMENTS)}
        FROM read_ndjson({quoted(str(assessments))}, columns={_columns(ASSESSMENTS)});
        DROP TABLE entries
        """
    )
    for path in (traces, entries, assessments):
        path.unlink()


def _columns(table: Table, first: str = "", without: Sequence[str] = ()) -> str:
    """The columns of a table's staged file with their types, as the argument of ``read_ndjson``."""
    listed = ", ".join(
        f"{name}: '{_READ_AS.get(kind, kind)}'"
        for name, kind, *_ in table.columns
        if name not in (*without, "account_id")
    )
    return f"{{{first}{listed}}}"


def _selected(table: Table, maps: Sequence[str] = ()) -> str:
    """The SELECT list that makes all stored columns of a table from the columns of its staged
    file."""
    selected = []
    for name, kind, *_ in table.columns:
        if name == "account_id":
            selected.append(f"{quoted(account_id())} AS account_id")
        elif name in maps:
            selected.append(f"map_from_entries(coalesce({name}_.{name}, [])) AS {name}")
        elif kind in _READ_AS:
            selected.append(f"make_timestamp({name} * 1000)::TIMESTAMPTZ AS {name}")
        else:
            selected.append(name)
    return ", ".join([*selected, f"{_day('request_time')} AS {table.partition}"])


def _entries(kind: str) -> str:
    """A subquery with one list of (key, value) pairs per trace, sorted by key so that equal maps
    compare equal."""
    return (
        f"(SELECT n, list({{k: k, v: v}} ORDER BY k) AS {kind} FROM entries "
        f"WHERE kind = '{kind}' GROUP BY n) {kind}_"
    )


def _day(ms: str) -> str:
    return f"strftime(make_timestamp({ms} * 1000), '%Y-%m-%d')"


def _line(fields: dict[str, Any]) -> str:
    return json.dumps(fields) + "\n"
