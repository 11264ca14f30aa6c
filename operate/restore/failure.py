"""The error that a restore of the table and its files raises if it cannot continue."""

from __future__ import annotations


class CannotRestore(Exception):
    """Raised if a restore of the table and files cannot go on; says why, and what to do."""
