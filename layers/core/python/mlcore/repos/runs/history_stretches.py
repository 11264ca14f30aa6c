"""Stretches of a metric's history: batches, packs, segments of files, and what LSI2 tells of packs;
where each begins and ends at most, so that pages unpack and fetch no more than they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.models.runs import RunMetricBatch, RunMetricHistory
from mlcore.repos.runs import history, history_files, point_columns, point_places
from mlcore.repos.runs.history_files import Segment
from mlcore.settle import Conflict


class Stretch(NamedTuple):
    """An item of history, or what an index or the item of a file tells of it."""

    first: str
    last: str
    """Places; the first one perhaps without its value, the last one perhaps too late."""
    size: int
    """How many points there are."""
    points: Sequence[Metric] = ()
    batch: Raw | None = None
    pack: Raw | None = None
    """Where the points are, if they are not here;"""
    sk: str = ""
    """or the sort key of the pack,"""
    segment: Segment | None = None
    """or where in which file."""


def of_batch(item: Raw, key: str) -> Stretch:
    """Needs what :data:`mlcore.repos.runs.history.BATCH_ATTRIBUTES` names, and the sort key. Ids of
    batches that earlier versions wrote may be no places."""
    batch = RunMetricBatch.of(item)
    if batch.data is None:
        return of_points(history.points_of_batch(item, key))
    size = point_columns.count(batch.data, key)
    if not size:
        return of_points(())
    span, first = keys.parse_batch_id(batch.SK)
    return Stretch(first, point_places.latest(first, span), size, batch=item)


def of_points(points: Sequence[Metric]) -> Stretch:
    """Of points that are unpacked already."""
    places = sorted(point_places.place(point_places.order(point)) for point in points)
    return Stretch(places[0], places[-1], len(points), points) if places else Stretch("", "", 0)


def of_pack(item: Raw, key: str) -> Stretch:
    """Needs :data:`mlcore.repos.runs.history.PACK_ATTRIBUTES` and ``lsi2sk``."""
    lsi2sk = RunMetricHistory.of(item).lsi2sk
    if lsi2sk is None:
        return of_points(history.points_of_pack(item, key))
    first, last, count, _ = keys.parse_lsi2_metric_history(lsi2sk)
    return Stretch(first, last, count, pack=item)


def of_entry(item: Raw, key: str) -> Stretch:
    """Of a pack in LSI2; a point that is alone is in its key."""
    entry = RunMetricHistory.of(item)
    first, last, count, value = keys.parse_lsi2_metric_history(entry.lsi2sk or "")
    if count > 1:
        return Stretch(first, last, count, sk=entry.SK)
    timestamp, step, _ = point_places.parse(first)
    return Stretch(first, last, count, [Metric(key, value, timestamp, step)])


def of_segment(segment: Segment) -> Stretch:
    last = point_places.latest(segment.last, 0)
    return Stretch(segment.first, last, segment.size, segment=segment)


def load(pk: str, key: str, stretches: Sequence[Stretch]) -> list[Metric]:
    """The points of stretches, and perhaps others of their metric.

    Raises:
        Conflict: a pack is not there any more.
    """
    found = [point for stretch in stretches for point in stretch.points]
    for stretch in stretches:
        if stretch.batch is not None:
            found += history.points_of_batch(stretch.batch, key)
        if stretch.pack is not None:
            found += history.points_of_pack(stretch.pack, key)
    for item in table.batch_get([Key(pk, stretch.sk) for stretch in stretches if stretch.sk]):
        if item is None:
            raise Conflict  # an index told of it
        found += history.points_of_pack(item, key)
    return found + history_files.read(one.segment for one in stretches if one.segment is not None)
