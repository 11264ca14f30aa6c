"""The error for an SQL statement that is refused before it runs."""

from __future__ import annotations


class StatementRefused(Exception):
    """Raised if an SQL statement is not supported. The message says why, and is shown to the
    caller."""
