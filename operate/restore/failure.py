"""The error of a restore that cannot continue."""

from __future__ import annotations


class CannotRestore(Exception):
    """The message says why, and what to do."""
