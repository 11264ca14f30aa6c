"""Packs the history of runs: ``MBATCH`` items become ``MHIST`` packs of one metric each, or a file
(:mod:`mlcore.repos.runs.history_files`), and go then.

A run that is being logged to keeps its batches until there are :data:`MANY_BYTES` of them; what is
left is packed when the run is followed up. What takes the place of batches is there before they go.
Everything may be repeated, by several at once: at worst a point is in two places, and is one point.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from indexer import looks
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.entities.metrics import Metric
from mlcore.models.base import KEY
from mlcore.models.runs import RunMetricBatch, RunMetricHistory
from mlcore.repos.document import Owner
from mlcore.repos.removal import remains
from mlcore.repos.runs import history, history_files

MANY_BYTES: Final = 512_000
"""Of the batches of a run that is logged to: half of what a reader gets in one request."""
LOOK_BYTES: Final = 128_000
"""In so many bytes of batches somebody looks once on average how many there are. So of 100 runs
that have :data:`MANY_BYTES` two reach twice as many before it is noticed."""
FILE_POINTS: Final = 2_000
"""More points than these, some 15 KB, go to a file: writing one costs as much as five write units,
and an experiment may have a million runs in its 10 GB."""
PORTION_BYTES: Final = 2_000_000
"""Of batches that are packed at a time."""
FEW_KEYS: Final = 16
SPARSE_POINTS: Final = 8
"""Of more metrics than :data:`FEW_KEYS` with fewer points each, packs would be many and hold
nothing: the batches are better."""
READING_SECONDS: Final = 30.0
"""The longest that a request takes."""
TOGETHER: Final = 16
SIDE_BY_SIDE: Final = 100
"""Of :data:`PORTION_BYTES` each at most, and most of them much less."""
_ITEM_BYTES: Final = 150
"""Of a batch beside its points."""


class _Portion(NamedTuple):
    """Batches of a run, and what they hold."""

    run: Owner
    places: list[Key]
    series: dict[str, list[Metric]]
    size: int
    """Bytes of the batches."""
    more: bool
    """Whether there are more batches than these."""


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Of stream records of batches: packs the runs that have very many by now."""
    looked_at = {
        _run_of(record): None
        for record in records
        if "NewImage" in record and _is_looked_at(record["NewImage"])
    }
    _pack(list(looked_at), MANY_BYTES)


def pack_run(experiment_id: str, run_id: str) -> None:
    """Packs what is worth it of a run's history. May be killed at any point and be repeated."""
    pack_runs([(experiment_id, run_id)])


def pack_runs(runs: Sequence[Owner], *, read: bool = False) -> None:
    """:func:`pack_run` of many runs: one Query each, side by side, then the writes for all, of so
    many runs at a time that what is read of them has room.

    Args:
        read: whether the runs were read just now, so that they are there.
    """
    for at in range(0, len(runs), SIDE_BY_SIDE):
        _pack(runs[at : at + SIDE_BY_SIDE], 0, there=read)


def pack_batches(places: Iterable[Key]) -> None:
    """Packs the runs that some batches are of."""
    runs = list(dict.fromkeys(map(keys.run_of, places)))
    for at in range(0, len(runs), TOGETHER):
        pack_runs(runs[at : at + TOGETHER])


def repack(experiment_id: str, run_ids: Iterable[str]) -> None:
    """Writes packs of earlier versions anew. The old ones go once nobody reads any more who began
    before there were others: a query is no moment, and may have passed the place of a new one."""
    outdated: list[Key] = []
    waiting = iter(run_ids)
    while together := list(islice(waiting, TOGETHER)):
        for places in table.parallel([partial(repack_run, experiment_id, one) for one in together]):
            outdated += places
    if outdated:
        time.sleep(READING_SECONDS)
        table.batch_write(deletes=outdated)


def repack_run(experiment_id: str, run_id: str) -> list[Key]:
    """Writes the points of packs that earlier versions wrote as they are written now; the places of
    the former, which are still there."""
    run = (experiment_id, run_id)
    portion = _Portion(run, [], {}, 0, more=False)
    for item in table.query_all(
        keys.run(experiment_id, run_id).pk,
        prefix=keys.run_child_prefix(run_id, "MHIST"),
        attributes=[*KEY, RunMetricHistory.key, RunMetricHistory.points],
    ):
        pack = RunMetricHistory.of(item)
        if pack.points is not None:
            portion.places.append(key_in(item))
            found = history.points_of_pack(item, pack.key)
            portion.series.setdefault(pack.key, []).extend(found)
    if portion.places:
        _put([portion])
    return portion.places


def _pack(runs: Sequence[Owner], least: int, *, there: bool = False) -> None:
    """Packs runs that have so many bytes of batches, a portion of each at a time."""
    while runs:
        read = table.parallel([partial(_portion, run) for run in runs])
        worth = [one for one in read if one.size > least and _is_worth(one)]
        if not worth:
            return
        # An import writes the history of a run before the run.
        asked = [one.run for one in worth]
        known = set(asked) if there else _are_there(asked)
        packed = [one for one in worth if one.run in known]
        _put(packed)
        table.batch_write(deletes=[place for one in packed for place in one.places])
        for experiment_id, run_id in known - _are_there(sorted(known)):
            remains.of_run(experiment_id, run_id)  # removed meanwhile, with all that was there then
        runs = [one.run for one in packed if one.more]


def _portion(run: Owner) -> _Portion:
    experiment_id, run_id = run
    portion = _Portion(run, [], {}, 0, more=False)
    size = 0
    for item in table.query_all(
        keys.run(experiment_id, run_id).pk,
        prefix=keys.run_metric_batch_prefix(run_id),
        attributes=[*KEY, RunMetricBatch.data, RunMetricBatch.points],
    ):
        if size >= PORTION_BYTES:
            return portion._replace(size=size, more=True)
        size += _size(item)
        portion.places.append(key_in(item))
        for key, points in history.batch_points(item).items():
            portion.series.setdefault(key, []).extend(points)
    return portion._replace(size=size)


def _is_worth(portion: _Portion) -> bool:
    if not portion.places:
        return False
    points = sum(map(len, portion.series.values()))
    many = len(portion.series) > FEW_KEYS and points < SPARSE_POINTS * len(portion.series)
    return not many or points > FILE_POINTS


def _put(portions: Iterable[_Portion]) -> None:
    packs: list[Raw] = []
    files = []
    for (experiment_id, run_id), _, found, _, _ in portions:
        series = {key: history.distinct(points) for key, points in sorted(found.items())}
        count = sum(map(len, series.values()))
        if count > FILE_POINTS and history_files.has_place(experiment_id, run_id):
            files += history_files.made_of(experiment_id, run_id, series)
        else:
            for key, points in series.items():
                packs += history.history_items(experiment_id, run_id, key, points)
    if files:
        history_files.store(files)
    table.batch_write(history.ending([*packs, *(one.item for one in files)]))


def _are_there(runs: Sequence[Owner]) -> set[Owner]:
    found = table.batch_get([keys.run_ref(run_id) for _, run_id in runs])
    return {run for run, item in zip(runs, found, strict=True) if item is not None}


def _is_looked_at(item: Raw) -> bool:
    return looks.is_due(key_in(item), _size(item) / LOOK_BYTES)


def _size(item: Raw) -> int:
    batch = RunMetricBatch.of(item)
    return _ITEM_BYTES + len(batch.data or batch.points or "")


def _run_of(record: Mapping[str, Any]) -> Owner:
    return keys.run_of(key_in(record["Keys"]))
