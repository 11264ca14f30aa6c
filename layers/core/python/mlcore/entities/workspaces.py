"""A workspace."""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_WORKSPACE: Final = "default"


class Workspace(NamedTuple):
    """A world of its own for experiments, models and webhooks. ``artifact_root`` is None where
    files lie below the server's root."""

    name: str
    description: str | None
    artifact_root: str | None = None
    trace_archival_location: str | None = None
    trace_archival_retention: str | None = None
