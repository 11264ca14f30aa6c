"""The keys of run items in local indexes: which follow from which attributes and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mlcore.db import keys
from mlcore.db.attributes import ItemAttribute
from mlcore.entities.runs import Run
from mlcore.models.runs import Run as RunItem
from mlcore.repos.runs import points
from mlcore.search.fields import RUN_NAME_TAG

Values = Sequence[tuple[ItemAttribute[Any], Any]]
"""Attributes of a run item and what they are to be."""


class LocalKeys(NamedTuple):
    """A run item's keys in the local indexes."""

    lsi1sk: str
    lsi2sk: str
    lsi3sk: str
    lsi4sk: str
    lsi5sk: str | None


def of_new(run: Run, primary: str | None) -> LocalKeys:
    """``primary`` is the experiment's primary metric."""
    start = run.start_time or 0
    latest = run.metrics.get(primary) if primary else None
    return LocalKeys(
        keys.lsi1_run(run.lifecycle_stage, start, run.run_id),
        keys.lsi2_run(start, run.run_id),
        keys.lsi3_run(run.status, start, run.run_id),
        keys.lsi4_run(run.run_name, run.run_id),
        None if latest is None else keys.lsi5_run(latest.key, latest.value, run.run_id),
    )


def of_texts(item: RunItem, sets: Mapping[str, Mapping[str, str]]) -> Values:
    """What follows from texts that are written to a run item: its name, and its primary metric."""
    extra: list[tuple[ItemAttribute[Any], Any]] = []
    name = sets.get("tags", {}).get(RUN_NAME_TAG)
    if name is not None:
        extra.append((RunItem.run_name, name))
        extra.append((RunItem.lsi4sk, keys.lsi4_run(name, item.run_id)))
    primary = item.primary_metric
    latest = sets.get("metrics", {}).get(primary) if primary else None
    if primary and latest is not None:
        value = points.parse_latest(primary, latest).value
        extra.append((RunItem.lsi5sk, keys.lsi5_run(primary, value, item.run_id)))
    return extra
