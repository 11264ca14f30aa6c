"""Removes points from the stored history of a run: from batches, packs and files.

An item that keeps some of its points is written again under its own key. So a reader finds either
the item as it was or as it is now, and misses none of the points that stay. Each write
is a transaction that also checks a condition on the run, which the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.table import (
    Check,
    Delete,
    ItemUpdate,
    Operation,
    Put,
    TransactionFailed,
    key_of_item,
    table,
)
from mlcore.entities.metrics import Metric
from mlcore.ids import new_ulid
from mlcore.models.base import KEY, Item
from mlcore.models.runs import RunMetricBatch, RunMetricFile, RunMetricHistory
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.document import Owner
from mlcore.repos.runs.history import (
    history_files,
    latest_point_text,
    metric_history,
    point_columns,
)

TOGETHER: Final = 90
"""Maximum number of writes in a transaction; DynamoDB allows 100."""
BYTES_TOGETHER: Final = 2_000_000

_ALSO: Final = (*KEY, Item.ttl, RunMetricFile.experiment_id, RunMetricFile.run_id)

Keep = Callable[[Metric], bool]
"""Returns whether a point stays in the history."""


class NoLongerNeeded(Exception):
    """The condition on the run's item does not hold any more, because another process has completed
    the removal of the metric points."""


class Reduction(NamedTuple):
    """The operation that removes points from an item of metric history, and how many bytes it
    writes."""

    operation: Put | ItemUpdate | Delete
    size: int


def remove(run: Owner, keep: Keep, condition: ConditionExpression) -> dict[str, Metric]:
    """Removes all points from the history of a run that ``keep`` does not accept. May be killed
    anywhere and repeated.

    Batches are read before packs, as all readers do, because the indexer moves points from batches
    (the points of one request) to packs (many points of one metric). While the condition holds, no
    other process may write points.

    Args:
        condition: a condition on the run's item that each write requires.

    Returns:
        The latest of the remaining points of each metric.

    Raises:
        NoLongerNeeded: the condition does not hold.
        WriteConflict: the indexer moved some points meanwhile; the caller must begin again.
    """
    latest: dict[str, Metric] = {}
    sending = _Sending(Check(keys.run(*run), condition))
    for item in _stored(run):
        points = points_of(item)
        kept = [point for point in points if keep(point)]
        for key, point in latest_point_text.latest_of(kept).items():
            known = latest.get(key)
            latest[key] = (
                point if known is None else latest_point_text.latest_of([known, point])[key]
            )
        if len(kept) < len(points):
            sending.add(reduction(item, kept))
    sending.send()
    return latest


def points_of(item: Raw) -> list[Metric]:
    """Returns the points of an item of metric history: a batch (the points of one request), a pack
    (many points of one metric), or the item of a file, which is read."""
    kind = Item.of(item).type
    if kind == keys.RUN_METRIC_FILE.name:
        return history_files.read(history_files.every(item))
    if kind == keys.RUN_METRIC_HISTORY.name:
        return metric_history.points_of_pack(item, RunMetricHistory.of(item).key)
    return [point for points in metric_history.batch_points(item).values() for point in points]


def reduction(item: Raw, kept: Sequence[Metric]) -> Reduction:
    """Returns the operation that leaves only the points ``kept`` in an item of metric history, or
    deletes the item if none is kept. If the item describes a file, first writes a new file of them.

    Args:
        kept: the points that stay, in the order of :func:`points_of`.
    """
    if not kept:
        return Reduction(Delete(key_of_item(item)), 0)
    kind = Item.of(item).type
    if kind == keys.RUN_METRIC_HISTORY.name:
        return _of_pack(item, kept)
    series: dict[str, list[Metric]] = {}
    for point in kept:
        series.setdefault(point.key, []).append(point)
    return _of_file(item, series) if kind == keys.RUN_METRIC_FILE.name else _of_batch(item, series)


def _stored(run: Owner) -> Iterator[Raw]:
    """Yields the items of a run's history; batches before files before packs."""
    pk = keys.run(*run).pk
    files = []
    for item in table.query_all(
        pk,
        between=keys.run_metric_batches(run[1]),
        attributes=[*metric_history.BATCH_ATTRIBUTES, *_ALSO],
    ):
        if metric_history.is_file(item):
            files.append(item)
        else:
            yield item
    yield from files
    yield from table.query_all(pk, prefix=keys.run_child_prefix(run[1], "MHIST"))


def _of_batch(item: Raw, series: Mapping[str, Sequence[Metric]]) -> Reduction:
    data, _ = point_columns.pack(series)
    update = Update()
    update.set(RunMetricBatch.data, data)
    update.require_exists(Item.PK)
    return Reduction(ItemUpdate(key_of_item(item), update), len(data))


def _of_pack(item: Raw, kept: Sequence[Metric]) -> Reduction:
    owner = keys.parse(*key_of_item(item)).fields
    key = RunMetricHistory.of(item).key
    (made,) = metric_history.history_items(owner["experiment_id"], owner["run_id"], key, kept)
    return _replaced(item, made, len(RunMetricHistory.of(made).data))


def _of_file(item: Raw, series: Mapping[str, Sequence[Metric]]) -> Reduction:
    made = history_files.in_place_of(item, {key: series[key] for key in sorted(series)})
    history_files.store([made])
    size = len(RunMetricFile.of(made.item).directory) + len(RunMetricFile.of(item).SK)
    return _replaced(item, made.item, size)


def _replaced(item: Raw, made: Raw, size: int) -> Reduction:
    """Returns the operation that writes ``made`` under the key and with the end of ``item``."""
    names = (Item.PK.attr_name, Item.SK.attr_name, Item.ttl.attr_name)
    still_there = ConditionExpression()
    still_there.require_exists(Item.PK)
    kept: Mapping[str, Raw] = {name: item[name] for name in names if name in item}
    return Reduction(Put({**made, **kept}, still_there), size)


class _Sending:
    """The writes of a removal, sent as transactions that all check the run."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._operations: list[Operation] = []
        self._size = 0

    def add(self, change: Reduction) -> None:
        if len(self._operations) == TOGETHER or self._size + change.size > BYTES_TOGETHER:
            self.send()
        self._operations.append(change.operation)
        self._size += change.size

    def send(self) -> None:
        if not self._operations:
            return
        try:
            table.transact([self._check, *self._operations], token=new_ulid())
        except TransactionFailed as failed:
            if 0 in failed.items:
                raise NoLongerNeeded from failed
            raise WriteConflict from failed
        self._operations, self._size = [], 0
