"""The error for a statement that is refused before it runs."""

from __future__ import annotations


class Refused(Exception):
    """A statement is not supported. The message, for the caller, says why."""
