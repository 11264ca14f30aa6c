"""The two processes of a query (``mltables/server.py`` starts them): one chooses the rows, one runs
the caller's statement. The system ends either at a limit of time, the second at one of memory, too.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from mltables import answer, gate, permitted
from mltables.bounds import evaluated
from mltables.copies import TooMuch
from mltables.database import connected
from mltables.dialect import failures, macros
from mltables.permitted import Source
from mltables.snapshot import quoted
from mltables.tables import TABLES

MEMORY: Final = "450MB"
ADDRESS_SPACE: Final = 800 << 20
"""Beyond what the process has when the query begins."""
ROWS: Final = 10_000
BYTES: Final = 4 << 20
MISSING: Final = "missing"
"""The first member of an answer that tells of a name which was not found."""


def prepared(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The statement for DuckDB, its parameters and what it reads; or ``{"error": message}``.

    Args:
        folder: where the rows of a caller who may not read all are written.
    """
    try:
        # Of a statement that takes long to read, its author is to blame; of files, nobody.
        _end_after(float(request["seconds"]))
        passed = gate.prepare(str(request["sql"]))
        given = request.get("parameters") or {}
        missing = sorted(passed.parameters - given.keys())
        if missing:
            raise gate.Refused(f"The parameter {missing[0]!r} has no value.")
        reads = passed.reads
        if request.get("whole"):
            reads = {
                table.name: frozenset(name for name, *_ in table.columns)
                for table in TABLES
                if table.name in reads
            }
        _end_after(float(request["starting"]))
        values = {name: given[name] for name in passed.parameters}
        wanted = evaluated(passed.bounds, values)
        sources = permitted.sources(reads, request.get("workspaces"), folder, wanted)
    except (gate.Refused, TooMuch) as refused:
        return {"error": str(refused)}
    except duckdb.Error as error:
        if "space" in str(error) or isinstance(error, duckdb.OutOfMemoryException):
            return {"error": str(TooMuch())}
        raise
    return {"sql": passed.sql, "parameters": values, "sources": sources}


def answered(request: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """What the statement answers (``mltables/answer.py``), or ``{"error": message}``.

    Args:
        told: what ``prepared`` said.
    """
    try:
        connection = opened([Source.of_json(one) for one in told["sources"]])
        # From here on the caller's statement is at work: nothing outside can be reached or written.
        _confine()
        _end_after(float(request["seconds"]))
        return run(connection, told["sql"], {**request, "parameters": told["parameters"]})
    except duckdb.BinderException as error:
        return {MISSING: True, "error": explained(error)}
    except answer.TooLarge as refused:
        return {"error": str(refused)}
    except (duckdb.Error, RuntimeError, MemoryError) as error:
        return {"error": explained(error)}


def run(connection: duckdb.DuckDBPyConnection, sql: str, request: dict[str, Any]) -> dict[str, Any]:
    """
    Raises:
        TooLarge, duckdb.Error, RuntimeError, MemoryError: what is wrong with the statement.
    """
    values = request.get("parameters") or {}
    most = int(request.get("bytes") or BYTES)
    form = request.get("format")
    macros.install(connection, sql)
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
    macros.settle(connection)
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
    return failures.said(text.replace(f'"{gate.SCHEMA}".', ""))[:1000] or type(error).__name__
