"""Keeps the METRIC, PARAM, TAG, INPUT and LM items of runs equal to the maps of the run items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from indexer import projections, writes
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.repos import run_children


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """One BatchGetItem for the runs of the records, then the writes for all of them."""
    changed: dict[tuple[str, str], projections.Changes] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        image = new or old or {}
        run = (image["experiment_id"]["S"], image["run_id"]["S"])
        changed.setdefault(run, set()).update(projections.changes(old, new, run_children.MAPS))
    wanted = [run for run, differing in changed.items() if differing]
    items = table.batch_get([keys.run(*run) for run in wanted])
    writes.apply(
        projections.children(item, run, run_children.MAPS, changed[run])
        for run, item in zip(wanted, items, strict=True)
    )
