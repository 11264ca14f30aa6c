"""A version of a scorer, and its *seal*: a digest that shows whether the stored version was changed
after its registration."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple


class SealedSource(NamedTuple):
    """Names the source code that a job runs: a version of a scorer, and the *seal*, a digest of
    that version when the job was started."""

    name: str
    version: int
    seal: str


class ScorerVersion(NamedTuple):
    experiment_id: str
    name: str
    version: int
    scorer_id: str
    serialized_scorer: str
    creation_time: int
    seal: str | None = None
    """The digest that was stored when the version was registered (see :func:`seal_of`); None for
    versions of release 0.1.0."""

    def is_intact(self) -> bool:
        """Whether the scorer version is unchanged since it was registered: its digest equals the
        stored one (``seal``). Always True for a version without a stored digest."""
        return self.seal is None or self.seal == seal_of(self)

    def source(self) -> SealedSource:
        return SealedSource(self.name, self.version, seal_of(self))


def seal_of(version: ScorerVersion) -> str:
    """Returns a digest of all fields of a scorer version: its ids, name and number, the serialized
    scorer, and when it was registered. So the same scorer that is registered again has another
    seal."""
    parts = version._replace(seal=None)
    return hashlib.sha256(json.dumps(parts[:-1]).encode()).hexdigest()
