"""The error that a restore of the table and its files raises if it cannot continue."""

from __future__ import annotations


class CannotRestore(Exception):
    """Raised if a restore cannot continue. The message says why, and what to do."""
