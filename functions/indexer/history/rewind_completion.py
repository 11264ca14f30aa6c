"""Completes rewinds (deletions of a run's metric points after a step) that a killed process left
incomplete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcore.models.runs import Run
from mlcore.repos.runs.core import rewinding
from mlcore.repos.runs.history import rewinds


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of runs: completes rewinds (deletions of a run's metric points after a
    step) that the last record of a run shows as open. Usually the request that began the rewind has
    completed it by then; then the run is only read."""
    begun = {}
    for record in records:
        if "NewImage" in record:
            run = Run.of(record["NewImage"])
            if run.rewinds is not None:
                begun[run.experiment_id, run.run_id] = rewinds.of(run).is_open
    for owner, is_open in begun.items():
        if is_open:
            rewinding.finish(owner)
