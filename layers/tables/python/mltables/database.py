"""Databases of DuckDB that live as long as one step or query; knows no table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

MEMORY: Final = "200MB"
"""Of what a step of the publisher keeps in memory; the rest spills."""


def connected(folder: Path, memory: str = MEMORY) -> duckdb.DuckDBPyConnection:
    """A database in memory that spills into a folder and speaks of time in UTC."""
    connection = duckdb.connect(
        config={
            "memory_limit": memory,
            "threads": 2,
            "temp_directory": str(folder / "spill"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    return connection
