"""Metric history: points are written in batches and read merged, each distinct point once.

The points of one request are one ``MBATCH`` item, a *batch* (or several, if they are many). Once
there are many batches, the indexer writes their points again, either as ``MHIST`` items, *packs*,
each with points of one metric, or as a file (:mod:`.history_files`), and then deletes the batches.
So a reader reads the batches *first*: if a batch is gone, its points were in packs or a file
before, and the later consistent read of the packs finds them; the item that describes a file sorts
after all batches in the same query. Points found twice (a repeated request, a batch packed twice)
are one point, as in MLflow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter, lt
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import key_of_item, table
from mlcore.entities.metrics import Metric
from mlcore.ids import now_ms
from mlcore.models.base import Item
from mlcore.models.runs import RunMetricBatch, RunMetricFile, RunMetricHistory
from mlcore.repos.runs.history import (
    history_files,
    length_classes,
    point_columns,
    point_positions,
)
from mlcore.repos.runs.history.history_files import SEGMENT_POINTS, Segment
from mlcore.repos.settings import ttl_policy

MAX_BATCH_BYTES: Final = 200_000
"""Before compression: half of DynamoDB's 400 KB, so that keys and attribute names never matter."""

BATCH_ATTRIBUTES: Final = (
    Item.type,
    RunMetricBatch.data,
    RunMetricFile.location,
    RunMetricFile.directory,
)
"""Attributes to read of batches, and of the items of files after them."""
_PLACE: Final = itemgetter(2, 3, 1)
"""Timestamp, step and value of a point."""

PACK_ATTRIBUTES: Final = (RunMetricHistory.data,)
"""Attributes to read of packs."""


def items(
    experiment_id: str, run_id: str, metrics: Sequence[Metric], written: int | None = None
) -> list[Raw]:
    """Returns the ``MBATCH`` items that hold the points of one request. Equal points give items of
    the same key, so a retry writes nothing new.

    Args:
        written: the time to write into the items, in milliseconds; None for now.
    """
    time = now_ms() if written is None else written
    by_key: dict[str, list[Metric]] = {}
    for metric in metrics:
        by_key.setdefault(metric.key, []).append(metric)
    made: list[Raw] = []
    batch: dict[str, Sequence[Metric]] = {}
    size = 0
    for key, series in by_key.items():
        for at in range(0, len(series), SEGMENT_POINTS):
            chunk = series[at : at + SEGMENT_POINTS]
            weight = len(key.encode()) + point_columns.POINT_BYTES * len(chunk)
            if batch and (key in batch or size + weight > MAX_BATCH_BYTES):
                made.append(_batch_item(experiment_id, run_id, batch, time))
                batch, size = {}, 0
            batch[key] = chunk
            size += weight
    made.append(_batch_item(experiment_id, run_id, batch, time))
    return made


def history_items(experiment_id: str, run_id: str, key: str, series: Sequence[Metric]) -> list[Raw]:
    """Returns the packs (``MHIST`` items, each with many points of one metric) to write for points
    of the metric ``key``.

    Args:
        series: the points, in order.
    """
    made = []
    for chunk in history_files.chunks(series):
        data, digest = point_columns.pack({key: chunk})
        item_key = keys.run_metric_history(
            experiment_id, run_id, key, chunk[0].step, chunk[0].timestamp, digest
        )
        first, last = _reach(chunk)
        span = length_classes.span(first, last)
        model = RunMetricHistory(
            PK=item_key.pk,
            SK=item_key.sk,
            lsi2sk=keys.lsi2_metric_history(
                run_id, key, span, first, last, len(chunk), chunk[0].value
            ),
            key=key,
            data=data,
            count=len(chunk),
            updated_at=now_ms(),
            version=1,
        )
        made.append(model.serialize())
    return made


def ending(made: Iterable[Raw]) -> list[Raw]:
    """Returns the given items of metric history with the time at which DynamoDB deletes them, if
    the setting ``ttl_policy`` lets history expire; otherwise unchanged."""
    end = ttl_policy.expires_at("metric_history")
    return [ttl_policy.with_expiry(item, end) for item in made]


def batches(
    experiment_id: str, run_id: str, metrics: Sequence[Metric], written: int | None = None
) -> list[Raw]:
    """Returns the batch items that hold the metric points of one request, as :func:`items` does; if
    metric history expires, each with the time of its expiry. An empty list if there are no points.
    """
    return ending(items(experiment_id, run_id, metrics, written)) if metrics else []


def refuse(batch: Raw) -> None:
    """Removes the points from a batch that a request wrote, because the request turned out to be
    forbidden afterwards. Does nothing if the batch was deleted or put again since. The batch's item
    remains, so that the indexer sees the change in the stream."""
    update = Update()
    update.remove(RunMetricBatch.data)
    update.set(RunMetricBatch.refused, True)
    update.require_equal(Item.updated_at, Item.of(batch).updated_at)
    with contextlib.suppress(ConditionFailed):
        table.update(key_of_item(batch), update)


def is_refused(batch: Raw) -> bool:
    """Whether :func:`refuse` removed the metric points from the item of a batch."""
    return RunMetricBatch.refused.attr_name in batch


def write(
    experiment_id: str, run_id: str, metrics: Sequence[Metric], written: int | None = None
) -> None:
    put(batches(experiment_id, run_id, metrics, written))


def put(batches: Sequence[Raw]) -> None:
    """Writes the batches of metric points that :func:`batches` returned."""
    if len(batches) == 1:
        table.put(batches[0])
    else:
        table.batch_write(batches)


class HistoryParts(NamedTuple):
    """The parts in which a metric's history is stored: the items and the bytes of file segments
    that contain points of the metric, some of them with points of other metrics as well. A point
    may be in two of the parts."""

    batches: list[Raw]
    packs: list[Raw]
    segments: list[bytes]


def read_stored(experiment_id: str, run_id: str, key: str) -> HistoryParts:
    """Reads the parts in which a metric's history is stored, without unpacking them; two round
    trips for a history of usual size."""
    pk = keys.run(experiment_id, run_id).pk
    batches: list[Raw] = []
    listed: list[Segment] = []
    for item in table.query_all(
        pk, between=keys.run_metric_batches(run_id), attributes=BATCH_ATTRIBUTES
    ):
        if is_file(item):
            listed += history_files.segments(item, key)
        else:
            batches.append(item)
    stored = HistoryParts(batches, [], [])

    def read_packs() -> None:
        prefix = keys.run_metric_history_prefix(run_id, key)
        stored.packs.extend(table.query_all(pk, prefix=prefix, attributes=PACK_ATTRIBUTES))

    def read_files() -> None:
        stored.segments.extend(history_files.contents(listed))

    table.parallel([read_packs, *([read_files] if listed else [])])
    return stored


def read(experiment_id: str, run_id: str, key: str) -> list[Metric]:
    """Returns all distinct points of a metric, ordered by timestamp, step and value (NaN as 0) as
    in MLflow. For a page see :mod:`mlcore.repos.runs.history.history_pages`."""
    return points_of(read_stored(experiment_id, run_id, key), key)


def points_of(stored: HistoryParts, key: str) -> list[Metric]:
    """Returns the distinct points of the metric ``key`` in MLflow's order.

    Args:
        stored: the metric's history as :func:`read_stored` read it.
    """
    series = [points_of_batch(item, key) for item in stored.batches]
    series += [points_of_pack(item, key) for item in stored.packs]
    series += [point_columns.unpack(data, key).get(key, []) for data in stored.segments]
    return distinct([point for points in series for point in points])


def is_file(item: Raw) -> bool:
    """Whether an item among a run's metric batches is not a batch but describes a points file."""
    return Item.of(item).type == keys.RUN_METRIC_FILE.name


def batch_points(item: Raw) -> dict[str, list[Metric]]:
    """Returns the metric points of an ``MBATCH`` item by metric; an empty dict if :func:`refuse`
    removed the points, because their request was forbidden."""
    data = RunMetricBatch.of(item).data
    return {} if data is None else point_columns.unpack(data)


def points_of_batch(item: Raw, key: str) -> list[Metric]:
    """Returns the points of one metric in an ``MBATCH`` item (the points of one request)."""
    data = RunMetricBatch.of(item).data
    return [] if data is None else point_columns.unpack(data, key).get(key, [])


def points_of_pack(item: Raw, key: str) -> list[Metric]:
    """Returns the points in a pack (an ``MHIST`` item of one metric)."""
    return point_columns.unpack(RunMetricHistory.of(item).data, key).get(key, [])


def of_run(experiment_id: str, run_id: str) -> Iterator[Metric]:
    """Yields all points of all metrics of a run, unordered, some of them twice."""
    for point, _ in with_times(experiment_id, run_id):
        yield point


def with_times(experiment_id: str, run_id: str) -> Iterator[tuple[Metric, int]]:
    """Yields all metric points of a run as :func:`of_run`, each with the time at which its item was
    written, in milliseconds since the epoch."""
    pk = keys.run(experiment_id, run_id).pk
    files = []
    for item in table.query_all(
        pk,
        between=keys.run_metric_batches(run_id),
        attributes=[*BATCH_ATTRIBUTES, Item.updated_at],
    ):
        if is_file(item):
            files.append(item)
        else:
            written = Item.of(item).updated_at or 0
            for series in batch_points(item).values():
                for point in series:
                    yield point, written
    for item in table.query_all(
        pk,
        prefix=keys.run_child_prefix(run_id, "MHIST"),
        attributes=[RunMetricHistory.key, *PACK_ATTRIBUTES, Item.updated_at],
    ):
        written = Item.of(item).updated_at or 0
        for point in points_of_pack(item, RunMetricHistory.of(item).key):
            yield point, written
    for item in files:
        written = Item.of(item).updated_at or 0
        for point in history_files.read(history_files.every(item)):
            yield point, written


def distinct(points: Iterable[Metric]) -> list[Metric]:
    """Returns a metric's points without duplicates, in MLflow's order (timestamp, step, value)."""
    points = list(points)
    ordered = list(map(_PLACE, points))
    if all(map(lt, ordered, ordered[1:])):  # as in packs; NaN is never less
        return points
    by_identity = {point_positions.order(point): point for point in points}
    return [by_identity[identity] for identity in sorted(by_identity)]


def _batch_item(
    experiment_id: str, run_id: str, series: Mapping[str, Sequence[Metric]], written: int
) -> Raw:
    data, digest = point_columns.pack(series)
    first, last = _reach([metric for metrics in series.values() for metric in metrics])
    first = point_positions.step_of(first)
    span = length_classes.span(first, last)
    key = keys.run_metric_batch(experiment_id, run_id, keys.batch_id(span, first, digest))
    model = RunMetricBatch(PK=key.pk, SK=key.sk, data=data, updated_at=written, version=1)
    return model.serialize()


def _reach(series: Sequence[Metric]) -> tuple[str, str]:
    """Returns the positions (:mod:`.point_positions`) of the first and the last of some points,
    given in any order."""
    orders = [point_positions.order(metric) for metric in series]
    return point_positions.position_of(min(orders)), point_positions.position_of(max(orders))
