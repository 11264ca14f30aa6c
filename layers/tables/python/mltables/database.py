"""Databases of DuckDB that live as long as one step or query; knows no table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

MEMORY: Final = "200MB"
"""Of what a step of the publisher keeps in memory; the rest spills."""

THREADS: Final = 2


def connected(folder: Path | None, memory: str = MEMORY) -> duckdb.DuckDBPyConnection:
    """A database in memory that shows times in UTC and spills into a folder, if it is given one."""
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
