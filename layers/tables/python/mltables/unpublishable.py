"""The errors that say that data cannot be published, as opposed to a store that cannot be reached.

The publisher then publishes everything else: otherwise a value that one user has written, and that
no code foresaw, would keep the rows of all others out of the system tables.
"""

from __future__ import annotations

from typing import Final

import duckdb

UNPUBLISHABLE: Final = (
    *(duckdb.OutOfMemoryException, duckdb.DataError, duckdb.InvalidInputException),
    *(ArithmeticError, LookupError, RecursionError, TypeError, ValueError),
)
"""What DuckDB raises for data that do not fit into memory or into a column, and Python for a value
that cannot be converted."""
