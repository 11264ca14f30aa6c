"""Why a restore cannot go on."""

from __future__ import annotations


class CannotRestore(Exception):
    """The message says why, and what to do."""
