"""Opens DuckDB databases in memory for one step or query.

Opening a database takes about 30 ms of processor time, a large part of a small query. A process
that forks others for queries therefore opens one database before it forks
(:func:`open_before_fork`). Each forked process has its own copy of it, as of all memory, and
configures it when it connects.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

MEMORY: Final = "200MB"
"""Memory of a step of the publisher; the rest spills to disk."""

THREADS: Final = 2
"""Threads of a step of the publisher."""

_databases_before_fork: Final[list[duckdb.DuckDBPyConnection]] = []
"""At most one: the connection of the database that the process has opened before it forked."""


def connect(
    folder: Path | None, memory: str = MEMORY, threads: int = THREADS
) -> duckdb.DuckDBPyConnection:
    """Opens a DuckDB database in memory, in UTC. It spills to ``folder``; without one, not at all.

    In a process that was forked after :func:`open_before_fork`, this is a new connection to the
    process's copy of that database. Such a process may use one folder only. After it has connected
    with a folder, its connections without a folder may spill there, too.
    """
    if _databases_before_fork:
        connection = _databases_before_fork[0].cursor()
        connection.execute(f"SET memory_limit = '{memory}'; SET threads = {threads}")
        if folder:
            _set_spill(connection, _spill(folder))
    else:
        connection = _open(memory, threads, _spill(folder) if folder else "")
    connection.execute("SET enable_progress_bar = false")
    return connection


def open_before_fork() -> duckdb.DuckDBPyConnection:
    """Opens the DuckDB database that :func:`connect` uses in processes that this process forks. The
    database starts no thread, because a process with threads cannot be forked safely."""
    if not _databases_before_fork:
        _databases_before_fork.append(_open(MEMORY, 1, ""))
    return _databases_before_fork[0]


def _open(memory: str, threads: int, spill: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        config={
            "memory_limit": memory,
            "threads": threads,
            # Asynchronous threads would read ahead, which is useless for files on the local disk.
            "async_threads": 0,
            "temp_directory": spill,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
    )
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


def _set_spill(connection: duckdb.DuckDBPyConnection, spill: str) -> None:
    # DuckDB refuses to set a spill folder that is already in use, even to the same value.
    ((current,),) = connection.execute("SELECT current_setting('temp_directory')").fetchall()
    if current != spill:
        connection.execute("SET temp_directory = $spill", {"spill": spill})


def _spill(folder: Path) -> str:
    return str(folder / "spill")
