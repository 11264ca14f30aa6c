"""The entity of a workspace, independent of how it is stored."""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_WORKSPACE: Final = "default"


class Workspace(NamedTuple):
    """A workspace, which separates its experiments, models, webhooks and so on from other
    workspaces. ``artifact_root`` is None if its files are stored below the server's root."""

    name: str
    description: str | None
    artifact_root: str | None = None
    trace_archival_location: str | None = None
    trace_archival_retention: str | None = None
