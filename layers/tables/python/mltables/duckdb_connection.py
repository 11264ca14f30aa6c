"""Opens DuckDB databases in memory for one step or query."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

MEMORY: Final = "200MB"
"""Memory of a step of the publisher; the rest spills to disk."""

THREADS: Final = 2


def connect(folder: Path | None, memory: str = MEMORY) -> duckdb.DuckDBPyConnection:
    """Opens a database in memory, in UTC. It spills into ``folder``, or not at all without one."""
    connection = duckdb.connect(
        config={
            "memory_limit": memory,
            "threads": THREADS,
            "temp_directory": str(folder / "spill") if folder else "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return connection
