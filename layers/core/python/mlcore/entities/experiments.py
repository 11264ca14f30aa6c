"""The entity of an experiment, independent of how it is stored."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.search.text_fields import IndexedFields

DEFAULT_EXPERIMENT_ID: Final = "0"
DEFAULT_EXPERIMENT_NAME: Final = "Default"


class Experiment(NamedTuple):
    experiment_id: str
    name: str
    artifact_location: str
    lifecycle_stage: str
    creation_time: int
    last_update_time: int
    tags: dict[str, str]
    workspace: str
    epoch: int = 0
    """How often the experiment was deleted or restored; see ``repos.runs`` for its use."""
    indexed: IndexedFields | None = None
    """The fields that its full-text index covers completely."""
    followed: IndexedFields | None = None
    """The fields that the indexer maintains in its full-text index, possibly more."""
