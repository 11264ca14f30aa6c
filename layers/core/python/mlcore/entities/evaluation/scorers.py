"""A version of a scorer."""

from __future__ import annotations

from typing import NamedTuple


class ScorerVersion(NamedTuple):
    experiment_id: str
    name: str
    version: int
    scorer_id: str
    serialized_scorer: str
    creation_time: int
