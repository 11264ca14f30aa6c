"""Keeps the ``E#TAG`` items of experiments equal to the tags on ``E#META``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indexer import projections, writes
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.repos import experiments


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """One BatchGetItem for the experiments of the records, then the writes for all of them."""
    changed: dict[str, projections.Changes] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        experiment_id = (new or old or {})["experiment_id"]["S"]
        differing = projections.changes(old, new, experiments.MAPS)
        changed.setdefault(experiment_id, set()).update(differing)
    wanted = [experiment_id for experiment_id, differing in changed.items() if differing]
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in wanted])
    writes.apply(
        projections.children(item, (experiment_id,), experiments.MAPS, changed[experiment_id])
        for experiment_id, item in zip(wanted, items, strict=True)
    )
