"""Metric history: points are written in packs and read back merged, each distinct point once.

The points of one request are one item: a ``MHIST`` pack when they share a key, else an ``MBATCH``
which the indexer unpacks into ``MHIST`` packs and then deletes. A reader therefore reads the
batches *first*: a batch that is gone by then was unpacked before, so the later strongly consistent
read of the packs meets its points. Points met twice (a request sent twice, a batch unpacked twice)
are one point, as in MLflow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.ids import now_ms
from mlcore.models.runs import RunMetricBatch, RunMetricHistory
from mlcore.repos.runs import point_places, points
from mlcore.repos.settings import ttl_policy

MAX_PACK_BYTES = 200_000
"""Half of DynamoDB's 400 KB, so that keys and attribute names never matter."""


def items(experiment_id: str, run_id: str, metrics: Sequence[Metric]) -> list[Raw]:
    """The items that hold the points of one request. Equal points give equal items, so a retry
    writes nothing new."""
    by_key: dict[str, list[Metric]] = {}
    for metric in metrics:
        by_key.setdefault(metric.key, []).append(metric)
    if len(by_key) == 1:
        ((key, series),) = by_key.items()
        return history_items(experiment_id, run_id, key, series)
    made: list[Raw] = []
    batch: dict[str, list[Metric]] = {}
    size = 0
    for key, series in by_key.items():
        weight = len(key.encode()) + 48 * len(series)
        if batch and size + weight > MAX_PACK_BYTES:
            made.append(_batch_item(experiment_id, run_id, batch))
            batch, size = {}, 0
        batch[key] = series
        size += weight
    made.append(_batch_item(experiment_id, run_id, batch))
    return made


def history_items(experiment_id: str, run_id: str, key: str, series: Sequence[Metric]) -> list[Raw]:
    """``MHIST`` packs of one metric in its order, each below :data:`MAX_PACK_BYTES`."""
    size = MAX_PACK_BYTES // 48
    ordered = sorted(series, key=point_places.order)
    made = []
    for at in range(0, len(ordered), size):
        chunk = ordered[at : at + size]
        content = points.text(points.pack(chunk))
        place = keys.run_metric_history(
            experiment_id, run_id, key, chunk[0].step, chunk[0].timestamp, _digest(content)
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
            points=content,
            count=len(chunk),
            updated_at=now_ms(),
            version=1,
        )
        made.append(model.serialize())
    return made


def batch_points(item: Raw) -> dict[str, list[Metric]]:
    """The points of an ``MBATCH`` item by key."""
    return {
        key: points.unpack(key, packed)
        for key, packed in json.loads(RunMetricBatch.of(item).points).items()
    }


def ending(made: Iterable[Raw]) -> list[Raw]:
    """Items of history as they are put now: with an end, if history has one."""
    end = ttl_policy.until("metric_history")
    return [ttl_policy.marked(item, end) for item in made]


def write(experiment_id: str, run_id: str, metrics: Sequence[Metric]) -> None:
    made = ending(items(experiment_id, run_id, metrics))
    if len(made) == 1:
        table.put(made[0])
    else:
        table.batch_write(made)


def read(experiment_id: str, run_id: str, key: str) -> list[Metric]:
    """All distinct points of a metric, ordered by timestamp, step and value (NaN as 0) as MLflow's
    history is. For a page of them see :mod:`mlcore.repos.runs.history_pages`."""
    pk = keys.run(experiment_id, run_id).pk
    found: list[Metric] = []
    for item in table.query_all(
        pk, prefix=keys.run_metric_batch_prefix(run_id), attributes=[RunMetricBatch.points]
    ):
        found += points_of_batch(item, key)
    for item in table.query_all(
        pk,
        prefix=keys.run_metric_history_prefix(run_id, key),
        attributes=[RunMetricHistory.points],
    ):
        found += points_of_pack(item, key)
    return distinct(found)


def points_of_batch(item: Raw, key: str) -> list[Metric]:
    return points.unpack(key, json.loads(RunMetricBatch.of(item).points).get(key, ()))


def points_of_pack(item: Raw, key: str) -> list[Metric]:
    return points.unpack(key, json.loads(RunMetricHistory.of(item).points))


def of_run(experiment_id: str, run_id: str) -> Iterator[Metric]:
    """All points of a run in no order, some of them twice, page by page."""
    pk = keys.run(experiment_id, run_id).pk
    for item in table.query_all(
        pk, prefix=keys.run_metric_batch_prefix(run_id), attributes=[RunMetricBatch.points]
    ):
        for series in batch_points(item).values():
            yield from series
    for item in table.query_all(
        pk,
        prefix=keys.run_child_prefix(run_id, "MHIST"),
        attributes=[RunMetricHistory.key, RunMetricHistory.points],
    ):
        pack = RunMetricHistory.of(item)
        yield from points.unpack(pack.key, json.loads(pack.points))


def distinct(found: Iterable[Metric]) -> list[Metric]:
    by_identity = {point_places.order(point): point for point in found}
    return [by_identity[identity] for identity in sorted(by_identity)]


def _batch_item(experiment_id: str, run_id: str, series: Mapping[str, Sequence[Metric]]) -> Raw:
    content = points.text({key: points.pack(metrics) for key, metrics in series.items()})
    first, last = _reach([metric for metrics in series.values() for metric in metrics])
    first = point_places.step_of(first)
    span = point_places.span(first, last)
    place = keys.run_metric_batch(
        experiment_id, run_id, keys.batch_id(span, first, _digest(content))
    )
    model = RunMetricBatch(
        PK=place.pk,
        SK=place.sk,
        run_id=run_id,
        experiment_id=experiment_id,
        points=content,
        updated_at=now_ms(),
        version=1,
    )
    return dict(model.serialize())


def _reach(series: Sequence[Metric]) -> tuple[str, str]:
    """The places of the first and the last point."""
    orders = [point_places.order(metric) for metric in series]
    return point_places.place(min(orders)), point_places.place(max(orders))


def _digest(content: str) -> str:
    return blake2b(content.encode(), digest_size=12).hexdigest()
