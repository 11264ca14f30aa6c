"""Keys of run items in local indexes, derived from the item's attributes and from the values in its
maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mlcore import reserved_tags
from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.entities.runs import Run
from mlcore.models.runs import Run as RunItem
from mlcore.repos.runs.core import marks
from mlcore.repos.runs.history import latest_point_text

Values = Sequence[tuple[ItemAttribute[Any], Any]]
"""Attributes of a run item with their new values."""


class LocalKeys(NamedTuple):
    """The sort keys that a run's item has in the five local secondary indexes of the table."""

    lsi1sk: str
    lsi2sk: str
    lsi3sk: str
    lsi4sk: str
    lsi5sk: str


def of_new(run: Run) -> LocalKeys:
    start = run.start_time or 0
    return LocalKeys(
        keys.lsi1_run(run.lifecycle_stage, start, run.run_id),
        keys.lsi2_run(start, run.run_id),
        keys.lsi3_run(run.status, start, run.run_id),
        keys.lsi4_run(run.run_name, run.run_id),
        marks.of_new(run.run_id),
    )


def of_texts(item: RunItem, sets: Mapping[str, Mapping[str, str]]) -> Values:
    """Returns the attributes of a run item that follow from values written to its maps: the run's
    name and the key by which LSI4 orders names, if the write sets the tag with the name.

    Args:
        item: the run's item before the write.
        sets: the values that the write sets, by map and key.
    """
    extra: list[tuple[ItemAttribute[Any], Any]] = []
    name = sets.get("tags", {}).get(reserved_tags.RUN_NAME)
    if name is not None:
        extra.append((RunItem.run_name, name))
        extra.append((RunItem.lsi4sk, keys.lsi4_run(name, item.run_id)))
    return extra


def primary_metric(item: RunItem) -> str | None:
    """Returns the key in LSI5 for a run that the indexer has processed: it contains the run's
    latest value of its experiment's primary metric. None if the run has no value of that metric."""
    primary = item.primary_metric
    latest = (item.metrics or {}).get(primary) if primary else None
    if primary is None or latest is None:
        return None
    return keys.lsi5_run(
        primary, latest_point_text.parse_latest(primary, latest).value, item.run_id
    )
