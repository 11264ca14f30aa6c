"""``python -m mltables.query``: runs one statement in a process of its own, which ends with it.

Reads ``{"sql", "parameters", "workspaces", "folder", "format", "rows", "bytes"}`` from standard
input and writes one line of JSON: an answer (``mltables/answer.py``), or ``{"error": message}``.

First it writes the rows that the caller may read into ``folder``, unless that is all of them
(``mltables/permitted.py``). Then a new database, which reaches these rows only, runs the
statement: it may write no file, and the system ends it at a limit of time or memory.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import duckdb

from mltables import answer, gate, permitted
from mltables.database import connected
from mltables.permitted import Source
from mltables.snapshot import quoted

MEMORY: Final = "450MB"
ADDRESS_SPACE: Final = 800 << 20
"""Beyond what the process has when the query begins."""
SECONDS: Final = 3.5
ROWS: Final = 10_000
BYTES: Final = 4 << 20


def main() -> NoReturn:
    request = json.load(sys.stdin)
    try:
        said = run(request)
    except (gate.Refused, answer.TooLarge) as refused:
        said = {"error": str(refused)}
    except (duckdb.Error, RuntimeError, MemoryError) as error:
        said = {"error": explained(error)}
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()
    # Not by the way of an interpreter that waits for the threads of its libraries.
    os._exit(0)


def run(request: dict[str, Any]) -> dict[str, Any]:
    """
    Raises:
        Refused, TooLarge, duckdb.Error, RuntimeError, MemoryError: what is wrong with the
            statement.
    """
    seconds = float(request.get("seconds") or SECONDS)
    _end_after(seconds)
    prepared = gate.prepare(str(request["sql"]))
    _end_after(0)
    given = request.get("parameters") or {}
    missing = sorted(prepared.parameters - given.keys())
    if missing:
        raise gate.Refused(f"The parameter {missing[0]!r} has no value.")
    folder = Path(request["folder"])
    connection = opened(permitted.sources(prepared.reads, request.get("workspaces"), folder))
    # From here on the caller's statement is at work: nothing outside can be reached or written.
    _confine()
    _end_after(seconds)
    values = {name: given[name] for name in prepared.parameters}
    return answered(connection, prepared.sql, {**request, "parameters": values})


def answered(
    connection: duckdb.DuckDBPyConnection, sql: str, request: dict[str, Any]
) -> dict[str, Any]:
    """Runs a statement that the gate has let through."""
    values = request.get("parameters") or {}
    most = int(request.get("bytes") or BYTES)
    form = request.get("format")
    if form == "arrow":
        return answer.in_arrow(connection.sql(sql, params=values), most)
    cursor = connection.execute(sql, values)
    if form == "csv":
        return answer.in_csv(cursor, most)
    return answer.in_json(cursor, int(request.get("rows") or ROWS), most)


def opened(sources: Sequence[Source]) -> duckdb.DuckDBPyConnection:
    """A database with a view of each source, which can reach their files alone and spills
    nowhere."""
    connection = connected(None, MEMORY)
    connection.execute(f"CREATE SCHEMA {gate.SCHEMA}")
    for source in sources:
        connection.execute(
            f"CREATE VIEW {gate.SCHEMA}.{source.table} AS "
            f"SELECT {', '.join(source.columns)} FROM {source.relation()}"
        )
    paths = ", ".join(quoted(path) for source in sources for path in source.files)
    connection.execute(
        f"SET allowed_paths = [{paths}]; SET python_enable_replacements = false; "
        "SET enable_external_access = false; SET lock_configuration = true"
    )
    return connection


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


def explained(error: Exception) -> str:
    """What the caller is told: the engine's first line, without what it says of this machine."""
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or "alloc" in str(error):
        return "The query needs more memory than it may have."
    # What follows tells of files of this machine.
    text = str(error).split("\n\nLINE", maxsplit=1)[0].split("\n", maxsplit=1)[0]
    return text.replace(f'"{gate.SCHEMA}".', "")[:1000] or type(error).__name__


if __name__ == "__main__":
    main()
