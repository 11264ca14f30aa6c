"""Ids of runs out of the indexes of an experiment, page by page; knows no filter and reads no run.

Local indexes are strongly consistent. RANK items follow the runs through the stream: the runs that
they may be wrong about have pending markers, which must be read *before* them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.search.plan import Access, MetricOrder, MetricRange, NamePrefix, ParamValue, Status

PAGE_IDS = 1000
MAX_PENDING = 1000
"""With more runs pending than this, the RANK items are no help."""


class Entries:
    """The entries of one range of an index, read on demand. ``items`` grows, ``done`` tells the
    end."""

    def __init__(self, experiment_id: str, **query: Any) -> None:
        self._experiment_id = experiment_id
        self._query = query
        self._start: Raw | None = None
        self.items: list[Raw] = []
        self.done = False

    def read(self, limit: int = PAGE_IDS) -> list[Raw]:
        """One request; the entries that it added."""
        page = table.query(
            keys.experiment(self._experiment_id).pk,
            start=self._start,
            limit=limit,
            **self._query,
        )
        self._start = page.last_key
        self.done = page.last_key is None
        self.items += page.items
        return page.items

    def run_keys(self) -> list[Key]:
        """The runs of the entries read so far."""
        return [run_key(self._experiment_id, item) for item in self.items]


def run_key(experiment_id: str, entry: Raw) -> Key:
    run_id = entry.get("run_id")
    if run_id is not None:
        return keys.run(experiment_id, run_id["S"])
    return Key(entry["PK"]["S"], entry["SK"]["S"])


def is_asynchronous(access: Access) -> bool:
    """Whether the indexer writes the entries."""
    return isinstance(access, MetricRange | ParamValue)


def entries(experiment_id: str, access: Access) -> Entries:
    """The entries of the runs that an access holds."""
    match access:
        case MetricRange(key, lowest, highest):
            return _ranks(experiment_id, keys.rank_metric_range(key, highest, lowest))
        case ParamValue(key, value):
            prefix = keys.rank_param_value_prefix(key, value)
            return Entries(experiment_id, prefix=prefix, attributes=["run_id"])
        case Status(status):
            return _local(experiment_id, "LSI3", keys.lsi3_run_prefix(status))
        case NamePrefix(text, whole):
            prefix = keys.lsi4_run_name_prefix(text) if whole else keys.lsi4_run_begin(text)
            return _local(experiment_id, "LSI4", prefix)


def runs_of_stages(experiment_id: str, stages: Sequence[str]) -> Entries:
    """All runs by start time, newest first: those whose own stage is the one given, or all."""
    if len(stages) == 1:
        prefix = keys.lsi1_run_prefix(stages[0])
        return _local(experiment_id, "LSI1", prefix, descending=True)
    return _local(experiment_id, "LSI2", keys.lsi2_run_prefix(), descending=True)


def ranked(experiment_id: str, order: MetricOrder, begin: float | None) -> list[Entries]:
    """All runs that have a metric in the order of its value, NaN last, from ``begin`` (None: from
    the first; NaN: only NaN): entries that follow one another."""
    nan = _ranks(experiment_id, keys.rank_metric_range(order.key, math.nan, math.nan))
    if begin is not None and math.isnan(begin):
        return [nan]
    if order.ascending:
        lowest = -math.inf if begin is None else begin
        bounds = keys.rank_metric_range(order.key, math.inf, lowest)
        return [_ranks(experiment_id, bounds, descending=True), nan]
    highest = math.inf if begin is None else begin
    return [_ranks(experiment_id, keys.rank_metric_range(order.key, highest, -math.inf)), nan]


def pending(experiment_id: str) -> set[Key] | None:
    """The runs with a pending marker; None if there are too many of them."""
    markers = Entries(experiment_id, prefix=keys.pending_prefix("run"), attributes=["entity_id"])
    markers.read(MAX_PENDING + 1)
    if not markers.done:
        return None
    return {keys.run(experiment_id, item["entity_id"]["S"]) for item in markers.items}


def race(competitors: Sequence[Entries]) -> Entries:
    """Reads side by side until one ends: the one with the fewest entries, about."""
    while True:
        ended = [entries for entries in competitors if entries.done]
        if ended:
            return min(ended, key=lambda entries: len(entries.items))
        table.parallel([competitor.read for competitor in competitors])


def _ranks(experiment_id: str, bounds: tuple[str, str], *, descending: bool = False) -> Entries:
    return Entries(
        experiment_id, between=bounds, descending=descending, attributes=["run_id", "value"]
    )


def _local(experiment_id: str, index: str, prefix: str, *, descending: bool = False) -> Entries:
    return Entries(
        experiment_id,
        index=index,
        prefix=prefix,
        descending=descending,
        attributes=["PK", "SK"],
    )
