"""``python -m mltables.query``: runs one statement in a process of its own, which ends with it.

Reads ``{"sql", "parameters", "workspaces", "format", "rows", "bytes"}`` from standard input and
writes one line of JSON: ``{"columns", "types", "rows", "truncated"}``, ``{"text": CSV}`` or
``{"error": message}``. It may write no file, and has an end of time and of memory, at which the
system ends it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NoReturn

import duckdb

from mltables import gate
from mltables.database import connected
from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.tables import TABLES, existing

MEMORY: Final = "450MB"
ADDRESS_SPACE: Final = 800 << 20
"""Beyond what the process has when the query begins."""
SECONDS: Final = 3.5
ROWS: Final = 10_000
BYTES: Final = 4 << 20
BATCH: Final = 500

_TYPES: Final = {
    "VARCHAR": "string",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
    "INTEGER": "int",
    "HUGEINT": "decimal(38,0)",
    "FLOAT": "float",
}


def main() -> NoReturn:
    request = json.load(sys.stdin)
    try:
        answer = run(request)
    except gate.Refused as refused:
        answer = {"error": str(refused)}
    except (duckdb.Error, RuntimeError, MemoryError) as error:
        answer = {"error": _explained(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    # Not by the way of an interpreter that waits for the threads of its libraries.
    os._exit(0)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """
    Raises:
        Refused, duckdb.Error, MemoryError: what is wrong with the statement.
    """
    seconds = float(request.get("seconds") or SECONDS)
    _end_after(seconds)
    prepared = gate.prepare(str(request["sql"]))
    _end_after(0)
    given = request.get("parameters") or {}
    missing = sorted(prepared.parameters - given.keys())
    if missing:
        raise gate.Refused(f"The parameter {missing[0]!r} has no value.")
    with tempfile.TemporaryDirectory() as folder:
        connection = connected(Path(folder), MEMORY)
        make_views(connection, request.get("workspaces"))
    # From here on the caller's statement is at work: nothing outside can be reached or written.
    _confine()
    _end_after(seconds)
    cursor = connection.execute(prepared.sql, {name: given[name] for name in prepared.parameters})
    if request.get("format") == "csv":
        return _csv(cursor, int(request.get("bytes") or BYTES))
    return _json(cursor, int(request.get("rows") or ROWS), int(request.get("bytes") or BYTES))


def make_views(connection: duckdb.DuckDBPyConnection, workspaces: Sequence[str] | None) -> None:
    """Views of the tables as they are now, with the columns that readers see, and the rows of some
    workspaces if not of all; then the connection can reach the files of these alone."""
    lake = Lake()
    allowed: list[str] = []
    connection.execute(f"CREATE SCHEMA {gate.SCHEMA}")
    condition = ""
    if workspaces is not None:
        listed = ", ".join(quoted(one) for one in workspaces) or "NULL"
        condition = f" WHERE workspace_id IN ({listed})"
    for table in TABLES:
        delta = existing(lake, table)
        source = table.nothing
        if delta is not None:
            snapshot = Snapshot(lake, table, delta)
            allowed += lake.paths(delta, snapshot.files(connection))
            source = snapshot.source(connection)
        connection.execute(
            f"CREATE VIEW {gate.SCHEMA}.{table.name} AS "
            f"SELECT {table.names} FROM {source}{condition}"
        )
    paths = ", ".join(quoted(path) for path in allowed)
    connection.execute(
        f"SET allowed_paths = [{paths}]; SET temp_directory = ''; "
        "SET python_enable_replacements = false; SET enable_external_access = false; "
        "SET lock_configuration = true"
    )


def _end_after(seconds: float) -> None:
    """The system ends this process then, whatever its threads are doing; 0 takes that back."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _confine() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:  # no Linux: DuckDB's own limit and the deadline remain
        return
    most = pages * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _json(cursor: duckdb.DuckDBPyConnection, most_rows: int, most_bytes: int) -> dict[str, Any]:
    about = cursor.description or []
    rows: list[list[Any]] = []
    size = 0
    truncated = False
    while not truncated and (batch := cursor.fetchmany(BATCH)):
        for row in batch:
            values = [_value(value) for value in row]
            size += len(json.dumps(values))
            if len(rows) >= most_rows or size > most_bytes:
                truncated = True
                break
            rows.append(values)
    return {
        "columns": [column[0] for column in about],
        "types": [_type(column[1]) for column in about],
        "rows": rows,
        "truncated": truncated,
    }


def _csv(cursor: duckdb.DuckDBPyConnection, most_bytes: int) -> dict[str, Any]:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([column[0] for column in cursor.description or []])
    while batch := cursor.fetchmany(BATCH):
        for row in batch:
            lines.writerow(
                [
                    json.dumps(value) if isinstance(value, list | dict) else value
                    for value in map(_value, row)
                ]
            )
        if text.tell() > most_bytes:
            raise gate.Refused(f"The result has more than {most_bytes} bytes: add a LIMIT.")
    return {"text": text.getvalue()}


def _value(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601 with Z; what JSON has no number for, as MLflow
    writes it."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(key): _value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    if value is None or isinstance(value, str | int):
        return value
    return str(value)


def _type(kind: object) -> str:
    text = str(kind)
    return _TYPES.get(text, text.lower())


def _explained(error: Exception) -> str:
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or "alloc" in str(error):
        return "The query needs more memory than it may have."
    # What follows tells of files of this machine.
    text = str(error).split("\n\nLINE", maxsplit=1)[0].split("\n", maxsplit=1)[0]
    return text.replace(f'"{gate.SCHEMA}".', "")[:1000] or type(error).__name__


if __name__ == "__main__":
    main()
