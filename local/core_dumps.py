"""Keeps core dumps of the local server off the disk: they would hold the keys and texts that it has
in memory."""

from __future__ import annotations

import resource


def forbid() -> None:
    """Sets the size of core dumps to zero, for this process and for those that it starts. Without
    privileges they cannot raise it again."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
