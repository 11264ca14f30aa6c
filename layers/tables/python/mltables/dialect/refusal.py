"""The one error of a statement that is not run."""

from __future__ import annotations


class Refused(Exception):
    """The message says what is wrong with the statement."""
