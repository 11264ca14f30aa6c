"""Stored ranges of a metric's points: batches, packs and segments of files.

The reader of a page of history gets a :class:`Stretch` for each of these, with bounds of its first
and last point, so that it fetches and unpacks only the ranges that the page needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.models.runs import RunMetricBatch, RunMetricHistory
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.runs.history import (
    history_files,
    length_classes,
    metric_history,
    point_columns,
    point_positions,
)
from mlcore.repos.runs.history.history_files import Segment


class Stretch(NamedTuple):
    """Points of one metric that are stored together: a batch (the item of one request's points), a
    pack (an item with many points of the metric) or a segment of a file.

    Either the points were read already, or this names where to read them: exactly one of
    ``points``, ``batch``, ``pack``, ``sk`` and ``segment`` is set, or none if there are no points.
    """

    first: str
    last: str
    """The positions (:mod:`.point_positions`) of the first and the last point. ``first`` may lack
    the value; ``last`` is an upper bound."""
    size: int
    """Number of points."""
    points: Sequence[Metric] = ()
    """The points, if they were unpacked already."""
    batch: Raw | None = None
    """The batch item with the points, perhaps among points of other metrics."""
    pack: Raw | None = None
    """The pack item with the points."""
    sk: str = ""
    """The sort key of the pack with the points, which was not read."""
    segment: Segment | None = None
    """The file with the points, and where they are in it."""


def of_batch(item: Raw, key: str) -> Stretch:
    """Returns the range of the points of metric ``key`` in a batch item (the points of one
    request).

    Args:
        item: has the sort key and the attributes in
            :data:`mlcore.repos.runs.history.metric_history.BATCH_ATTRIBUTES`.
    """
    batch = RunMetricBatch.of(item)
    size = 0 if batch.data is None else point_columns.count(batch.data, key)
    if not size:
        return of_points(())
    span, first = keys.parse_batch_id(batch.SK)
    return Stretch(first, length_classes.latest(first, span), size, batch=item)


def of_points(points: Sequence[Metric]) -> Stretch:
    """Returns the range of a metric's history that consists of the given points, in any order."""
    places = sorted(point_positions.position_of(point_positions.order(point)) for point in points)
    return Stretch(places[0], places[-1], len(points), points) if places else Stretch("", "", 0)


def of_pack(item: Raw) -> Stretch:
    """Returns the range of the points in a pack (an item with many points of one metric).

    Args:
        item: has ``lsi2sk`` and the attributes in
            :data:`mlcore.repos.runs.history.metric_history.PACK_ATTRIBUTES`.
    """
    first, last, count, _ = keys.parse_lsi2_metric_history(RunMetricHistory.of(item).lsi2sk)
    return Stretch(first, last, count, pack=item)


def of_entry(item: Raw, key: str) -> Stretch:
    """Returns the range of the points in a pack (an item with many points) of metric ``key``, from
    the pack's entry in LSI2, without reading the pack. The key of the entry contains the bounds and
    the number of the points, and the point itself if there is only one."""
    entry = RunMetricHistory.of(item)
    first, last, count, value = keys.parse_lsi2_metric_history(entry.lsi2sk)
    if count > 1:
        return Stretch(first, last, count, sk=entry.SK)
    timestamp, step, _ = point_positions.parse(first)
    return Stretch(first, last, count, [Metric(key, value, timestamp, step)])


def of_segment(segment: Segment) -> Stretch:
    last = length_classes.latest(segment.last, 0)
    return Stretch(segment.first, last, segment.size, segment=segment)


def load(pk: str, key: str, stretches: Sequence[Stretch]) -> list[Metric]:
    """Reads and returns all points of metric ``key`` in the given ranges, and possibly further
    points of the metric.

    Args:
        pk: the partition key of the run.

    Raises:
        WriteConflict: an item with points (a pack) no longer exists, because the indexer has
            replaced it.
    """
    points = [point for stretch in stretches for point in stretch.points]
    for stretch in stretches:
        if stretch.batch is not None:
            points += metric_history.points_of_batch(stretch.batch, key)
        if stretch.pack is not None:
            points += metric_history.points_of_pack(stretch.pack, key)
    for item in table.batch_get([Key(pk, stretch.sk) for stretch in stretches if stretch.sk]):
        if item is None:
            raise WriteConflict  # the pack was deleted after its index entry was read
        points += metric_history.points_of_pack(item, key)
    return points + history_files.read(
        stretch.segment for stretch in stretches if stretch.segment is not None
    )
