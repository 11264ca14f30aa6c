"""Unpacks ``MBATCH`` items into the ``MHIST`` packs of their metrics, and removes them then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.repos.runs import history


def project(records: Sequence[Mapping[str, Any]]) -> None:
    named = dict.fromkeys(
        Key(record["Keys"]["PK"]["S"], record["Keys"]["SK"]["S"])
        for record in records
        if record.get("NewImage")
    )
    unpack(named)


def unpack(places: Iterable[Key]) -> None:
    """Batches of one run are merged into common packs. The packs are there before the batches
    go."""
    batches = [item for item in table.batch_get(list(places)) if item is not None]
    series: dict[tuple[str, str, str], list[Metric]] = {}
    for item in batches:
        run = (item["experiment_id"]["S"], item["run_id"]["S"])
        for key, points in history.batch_points(item).items():
            series.setdefault((*run, key), []).extend(points)
    table.batch_write(
        pack
        for (experiment_id, run_id, key), points in series.items()
        for pack in history.ending(
            history.history_items(experiment_id, run_id, key, history.distinct(points))
        )
    )
    table.batch_write(deletes=[Key(item["PK"]["S"], item["SK"]["S"]) for item in batches])
