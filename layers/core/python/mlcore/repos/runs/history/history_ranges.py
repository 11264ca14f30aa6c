"""Stored ranges of a metric's points: batches, packs, file segments and index entries of packs,
each with bounds of its first and last point, so that pages fetch and unpack no more than they
need."""

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
from mlcore.repos.runs.history import history_files, metric_history, point_columns, point_positions
from mlcore.repos.runs.history.history_files import Segment


class Stretch(NamedTuple):
    """A stored range of a metric's points: an item, or its description in an index entry or in a
    file's directory."""

    first: str
    last: str
    """Bounds in the form of :mod:`.point_positions`; ``first`` may lack the value, ``last`` may be
    too late."""
    size: int
    """Number of points."""
    points: Sequence[Metric] = ()
    batch: Raw | None = None
    pack: Raw | None = None
    """The item with the points, unless they are in ``points``;"""
    sk: str = ""
    """or the sort key of the pack,"""
    segment: Segment | None = None
    """or the file and the position of the points in it."""


def of_batch(item: Raw, key: str) -> Stretch:
    """Returns the range of a metric's points in a batch item. The item must have been read with
    :data:`mlcore.repos.runs.history.metric_history.BATCH_ATTRIBUTES` and the sort key."""
    batch = RunMetricBatch.of(item)
    size = 0 if batch.data is None else point_columns.count(batch.data, key)
    if not size:
        return of_points(())
    span, first = keys.parse_batch_id(batch.SK)
    return Stretch(first, point_positions.latest(first, span), size, batch=item)


def of_points(points: Sequence[Metric]) -> Stretch:
    """Returns the range of points that are in memory already."""
    places = sorted(point_positions.place(point_positions.order(point)) for point in points)
    return Stretch(places[0], places[-1], len(points), points) if places else Stretch("", "", 0)


def of_pack(item: Raw) -> Stretch:
    """Returns the range of points in a pack item. The item must have been read with
    :data:`mlcore.repos.runs.history.metric_history.PACK_ATTRIBUTES` and ``lsi2sk``."""
    first, last, count, _ = keys.parse_lsi2_metric_history(RunMetricHistory.of(item).lsi2sk)
    return Stretch(first, last, count, pack=item)


def of_entry(item: Raw, key: str) -> Stretch:
    """Returns the range of points in a pack, from the pack's entry in LSI2. If the pack has a
    single point, the key of the entry contains that."""
    entry = RunMetricHistory.of(item)
    first, last, count, value = keys.parse_lsi2_metric_history(entry.lsi2sk)
    if count > 1:
        return Stretch(first, last, count, sk=entry.SK)
    timestamp, step, _ = point_positions.parse(first)
    return Stretch(first, last, count, [Metric(key, value, timestamp, step)])


def of_segment(segment: Segment) -> Stretch:
    last = point_positions.latest(segment.last, 0)
    return Stretch(segment.first, last, segment.size, segment=segment)


def load(pk: str, key: str, stretches: Sequence[Stretch]) -> list[Metric]:
    """Returns all points in stored ranges; may return further points of the metric. Raises
    WriteConflict if a pack no longer exists.

    Args:
        pk: the partition of the run.
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
