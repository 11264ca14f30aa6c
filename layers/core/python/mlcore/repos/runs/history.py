"""Metric history: points are written in batches and read back merged, each distinct point once.

The points of one request are one item, an ``MBATCH``. Once there are enough, the indexer makes
``MHIST`` packs of them, of one metric each, or a file (:mod:`.history_files`), and deletes the
batches then. A reader therefore reads the batches *first*: a batch that is gone by then was packed
before, so the later strongly consistent read of the packs meets its points, and the item of its
file lies behind all batches in the same query. Points met twice (a request sent twice, a batch
packed twice) are one point, as in MLflow.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter, lt
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import key_in, table
from mlcore.entities.metrics import Metric
from mlcore.ids import now_ms
from mlcore.models.base import Item
from mlcore.models.runs import RunMetricBatch, RunMetricFile, RunMetricHistory
from mlcore.repos.runs import history_files, point_columns, point_places, points
from mlcore.repos.runs.history_files import SEGMENT_POINTS, Segment
from mlcore.repos.settings import ttl_policy

MAX_BATCH_BYTES: Final = 200_000
"""Before compression: half of DynamoDB's 400 KB, so that keys and attribute names never matter."""

BATCH_ATTRIBUTES: Final = (
    Item.type,
    RunMetricBatch.data,
    RunMetricBatch.points,
    RunMetricFile.location,
    RunMetricFile.directory,
)
"""What is asked for of batches and of the items of files behind them."""
_PLACE: Final = itemgetter(2, 3, 1)
"""Timestamp, step and value of a point."""

PACK_ATTRIBUTES: Final = (RunMetricHistory.data, RunMetricHistory.points)


def items(experiment_id: str, run_id: str, metrics: Sequence[Metric]) -> list[Raw]:
    """The items that hold the points of one request. Equal points give equal items, so a retry
    writes nothing new."""
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
                made.append(_batch_item(experiment_id, run_id, batch))
                batch, size = {}, 0
            batch[key] = chunk
            size += weight
    made.append(_batch_item(experiment_id, run_id, batch))
    return made


def history_items(experiment_id: str, run_id: str, key: str, series: Sequence[Metric]) -> list[Raw]:
    """``MHIST`` packs of one metric in its order."""
    made = []
    for chunk in history_files.chunks(series):
        data, digest = point_columns.pack({key: chunk})
        place = keys.run_metric_history(
            experiment_id, run_id, key, chunk[0].step, chunk[0].timestamp, digest
        )
        first, last = _reach(chunk)
        span = point_places.span(first, last)
        model = RunMetricHistory(
            PK=place.pk,
            SK=place.sk,
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
    """Items of history as they are put now: with an end, if history has one."""
    end = ttl_policy.until("metric_history")
    return [ttl_policy.marked(item, end) for item in made]


def batches(experiment_id: str, run_id: str, metrics: Sequence[Metric]) -> list[Raw]:
    """:func:`items` as they are put now; none without points."""
    return ending(items(experiment_id, run_id, metrics)) if metrics else []


def refuse(batch: Raw) -> None:
    """Takes away the points of a batch, unless it has gone or was put again since. Its item stays,
    so that the stream tells of it: batches whose points are elsewhere by now go."""
    update = Update()
    update.remove(RunMetricBatch.data)
    update.set(RunMetricBatch.refused, True)
    update.require_equal(Item.updated_at, Item.of(batch).updated_at)
    with contextlib.suppress(ConditionFailed):
        table.update(key_in(batch), update)


def is_refused(batch: Raw) -> bool:
    """Whether :func:`refuse` took its points."""
    return RunMetricBatch.refused.attr_name in batch


def write(experiment_id: str, run_id: str, metrics: Sequence[Metric]) -> None:
    put(batches(experiment_id, run_id, metrics))


def put(batches: Sequence[Raw]) -> None:
    """Writes the items that :func:`batches` made."""
    if len(batches) == 1:
        table.put(batches[0])
    else:
        table.batch_write(batches)


class Kept(NamedTuple):
    """A metric's history as it is kept: items that hold points of it, perhaps among others, and
    segments of files. Points may be in two of them."""

    batches: list[Raw]
    packs: list[Raw]
    segments: list[bytes]


def kept(experiment_id: str, run_id: str, key: str) -> Kept:
    """What is to be read of a metric's history; two round trips for one of usual size."""
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
    found = Kept(batches, [], [])

    def read_packs() -> None:
        prefix = keys.run_metric_history_prefix(run_id, key)
        found.packs.extend(table.query_all(pk, prefix=prefix, attributes=PACK_ATTRIBUTES))

    def read_files() -> None:
        found.segments.extend(history_files.contents(listed))

    table.parallel([read_packs, *([read_files] if listed else [])])
    return found


def read(experiment_id: str, run_id: str, key: str) -> list[Metric]:
    """All distinct points of a metric, ordered by timestamp, step and value (NaN as 0) as MLflow's
    history is. For a page of them see :mod:`mlcore.repos.runs.history_pages`."""
    return points_of(kept(experiment_id, run_id, key), key)


def points_of(found: Kept, key: str) -> list[Metric]:
    """As :func:`read`."""
    series = [points_of_batch(item, key) for item in found.batches]
    series += [points_of_pack(item, key) for item in found.packs]
    series += [point_columns.unpack(data, key).get(key, []) for data in found.segments]
    return distinct([point for points in series for point in points])


def is_file(item: Raw) -> bool:
    """Whether an item among batches tells of a file."""
    return Item.of(item).type == keys.RUN_METRIC_FILE.name


def batch_points(item: Raw) -> dict[str, list[Metric]]:
    """The points of an ``MBATCH`` item by key."""
    batch = RunMetricBatch.of(item)
    if batch.data is not None:
        return point_columns.unpack(batch.data)
    told = json.loads(batch.points or "{}")
    return {key: points.unpack(key, packed) for key, packed in told.items()}


def points_of_batch(item: Raw, key: str) -> list[Metric]:
    batch = RunMetricBatch.of(item)
    if batch.data is not None:
        return point_columns.unpack(batch.data, key).get(key, [])
    return points.unpack(key, json.loads(batch.points or "{}").get(key, ()))


def points_of_pack(item: Raw, key: str) -> list[Metric]:
    pack = RunMetricHistory.of(item)
    if pack.data is not None:
        return point_columns.unpack(pack.data, key).get(key, [])
    return points.unpack(key, json.loads(pack.points or "[]"))


def of_run(experiment_id: str, run_id: str) -> Iterator[Metric]:
    """All points of a run in no order, some of them twice, page by page."""
    for point, _ in with_times(experiment_id, run_id):
        yield point


def with_times(experiment_id: str, run_id: str) -> Iterator[tuple[Metric, int]]:
    """As :func:`of_run`, each with the time at which the item that holds it, or tells of its file,
    was written, in milliseconds since 1970."""
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


def distinct(found: Iterable[Metric]) -> list[Metric]:
    """In MLflow's order."""
    found = list(found)
    ordered = list(map(_PLACE, found))
    if all(map(lt, ordered, ordered[1:])):  # as of packs; NaN never is less
        return found
    by_identity = {point_places.order(point): point for point in found}
    return [by_identity[identity] for identity in sorted(by_identity)]


def _batch_item(experiment_id: str, run_id: str, series: Mapping[str, Sequence[Metric]]) -> Raw:
    data, digest = point_columns.pack(series)
    first, last = _reach([metric for metrics in series.values() for metric in metrics])
    first = point_places.step_of(first)
    span = point_places.span(first, last)
    place = keys.run_metric_batch(experiment_id, run_id, keys.batch_id(span, first, digest))
    model = RunMetricBatch(PK=place.pk, SK=place.sk, data=data, updated_at=now_ms(), version=1)
    return model.serialize()


def _reach(series: Sequence[Metric]) -> tuple[str, str]:
    """The places of the first and the last point."""
    orders = [point_places.order(metric) for metric in series]
    return point_places.place(min(orders)), point_places.place(max(orders))
