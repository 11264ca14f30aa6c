"""Packs the metric history of runs: rewrites ``MBATCH`` items (batches of points, one for each log
request) as ``MHIST`` packs of one metric each, or as a file
(:mod:`mlcore.repos.runs.history.history_files`), and deletes the batches.

The batches of an active run are packed when a check finds more than :data:`MANY_BYTES` of them, the
remaining ones when the run is inactive. Sparse batches (:data:`SPARSE_POINTS`) stay. Packs and
files are written before their batches are deleted. Each step may be repeated, also by several
processes at once: a point that is stored twice is read as one point. If a run was rewound
meanwhile, the deleted points are removed from the packs and files again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from indexer import compaction_sampling
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import Delete, Put, key_of_item, table
from mlcore.entities.metrics import Metric
from mlcore.models.base import KEY, Item
from mlcore.models.runs import Run, RunMetricBatch, RunReference
from mlcore.repos.document import Owner
from mlcore.repos.removal import remains
from mlcore.repos.runs.core import rewinding
from mlcore.repos.runs.history import (
    history_files,
    metric_history,
    point_positions,
    point_removal,
    rewinds,
)
from mlcore.repos.runs.history.point_positions import Order

MANY_BYTES: Final = 512_000
"""The batches of an active run are packed above this size: half of the bytes that one request
reads."""
CHECK_EACH_BYTES: Final = 128_000
"""The size of a run's batches is checked on average once per this many bytes written. So of 100
runs that reach :data:`MANY_BYTES`, two reach twice as many before a check."""
FILE_POINTS: Final = 2_000
"""A run with more points (about 15 KB) gets a file: writing a file costs as much as five write
units, and an experiment of 10 GB may have a million runs."""
PORTION_BYTES: Final = 2_000_000
"""A portion of a run's batches ends with the batch that reaches this many bytes. Portions are
packed one after the other."""
FEW_KEYS: Final = 16
SPARSE_POINTS: Final = 8
"""Batches of more metrics than :data:`FEW_KEYS`, with fewer points per metric than this, are not
packed, unless they have enough points for a file: they would become many packs of few points."""
IN_PARALLEL: Final = 16
SIDE_BY_SIDE: Final = 100
"""Runs that are packed at a time. For each about :data:`PORTION_BYTES` are read at most."""
_ITEM_BYTES: Final = 150
"""The size of a batch item without its points."""


class _Portion(NamedTuple):
    """Some batches (one item for each log request) of a run with their points."""

    run: Owner
    items: list[Raw]
    series: dict[str, list[Metric]]
    size: int
    """Bytes of the batches."""
    more: bool
    """Whether the run has further batches."""


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of batches (items with the metric points of one log request): packs
    the batches of runs that have more than :data:`MANY_BYTES` of them. A sample of the records
    decides which runs are checked."""
    sampled = {
        _run_of(record): None
        for record in records
        if "NewImage" in record and _is_sampled(record["NewImage"])
    }
    _pack(list(sampled), MANY_BYTES)


def pack_runs(runs: Sequence[Owner], *, read: bool = False) -> None:
    """Rewrites the batches of runs (one item for each log request) as packs or files; sparse
    batches (:data:`SPARSE_POINTS`) stay. The process may be killed at any point and the call
    repeated. Reads a portion of each run's batches, in parallel, then writes the packs of all these
    runs, and goes on with the next portions. Handles :data:`SIDE_BY_SIDE` runs at a time, to limit
    memory.

    Args:
        read: whether the caller has just read the runs, so that their existence need not be
            checked.
    """
    for at in range(0, len(runs), SIDE_BY_SIDE):
        _pack(runs[at : at + SIDE_BY_SIDE], 0, are_known=read)


def pack_batches(batch_keys: Iterable[Key]) -> None:
    """Packs the metric history of the runs whose ``MBATCH`` items have the given keys."""
    runs = list(dict.fromkeys(map(keys.run_of, batch_keys)))
    for at in range(0, len(runs), IN_PARALLEL):
        pack_runs(runs[at : at + IN_PARALLEL])


def _pack(runs: Sequence[Owner], least: int, *, are_known: bool = False) -> None:
    """Packs the history of the runs that have more than ``least`` bytes of batches, a portion of
    each run at a time.

    Args:
        are_known: whether the runs are known to exist.
    """
    rewound: dict[Owner, int] = {}
    while runs:
        portions = table.parallel([partial(_portion, run) for run in runs])
        worth = [
            portion for portion in portions if portion.size > least and _is_worth_packing(portion)
        ]
        if not worth:
            return
        # An import writes the history of a run before the run.
        runs_to_pack = [portion.run for portion in worth]
        existing = set(runs_to_pack) if are_known else _existing(runs_to_pack)
        packed = [portion for portion in worth if portion.run in existing]
        written = _put(packed)
        counts = _rewind_counts(sorted(existing))
        for run in existing - counts.keys():
            # A run that was restored when it had nearly expired may lack its reference.
            if table.get(keys.run(*run)) is None:
                remains.of_run(*run)  # the run was removed meanwhile
        again = {run for run, count in counts.items() if count != rewound.get(run, 0)}
        for portion in packed:
            if portion.run in again:
                _remove_rewound(portion, written[portion.run])
                rewound[portion.run] = counts[portion.run]
        table.batch_write(
            deletes=[
                key_of_item(item)
                for portion in packed
                if portion.run not in again
                for item in portion.items
            ]
        )
        runs = [portion.run for portion in packed if portion.more or portion.run in again]


def _portion(run: Owner) -> _Portion:
    experiment_id, run_id = run
    portion = _Portion(run, [], {}, 0, more=False)
    size = 0
    for item in table.query_all(
        keys.run(experiment_id, run_id).pk,
        prefix=keys.run_metric_batch_prefix(run_id),
        attributes=[*KEY, RunMetricBatch.data, Item.updated_at],
    ):
        if size >= PORTION_BYTES:
            return portion._replace(size=size, more=True)
        size += _size(item)
        portion.items.append(item)
        for key, points in metric_history.batch_points(item).items():
            portion.series.setdefault(key, []).extend(points)
    return portion._replace(size=size)


def _is_worth_packing(portion: _Portion) -> bool:
    if not portion.items:
        return False
    points = sum(map(len, portion.series.values()))
    many = len(portion.series) > FEW_KEYS and points < SPARSE_POINTS * len(portion.series)
    return not many or points > FILE_POINTS


def _put(portions: Iterable[_Portion]) -> dict[Owner, list[Raw]]:
    """Writes packs and files; returns the items by run."""
    written: dict[Owner, list[Raw]] = {}
    files = []
    for run, _, series_by_key, _, _ in portions:
        experiment_id, run_id = run
        items = written.setdefault(run, [])
        series = {
            key: metric_history.distinct(points) for key, points in sorted(series_by_key.items())
        }
        count = sum(map(len, series.values()))
        if count > FILE_POINTS and history_files.has_place(experiment_id, run_id):
            made = history_files.made_of(experiment_id, run_id, series)
            files += made
            items += [file.item for file in made]
        else:
            for key, points in series.items():
                items += metric_history.history_items(experiment_id, run_id, key, points)
    if files:
        history_files.store(files)
    table.batch_write(metric_history.ending([item for items in written.values() for item in items]))
    return written


def _remove_rewound(portion: _Portion, written: Iterable[Raw]) -> None:
    """Removes points from packs and files that were written while their run was rewound: those that
    the rewind deleted. Their batches stay, to be read and packed again.

    Args:
        written: the items of the packs and files.
    """
    rewinding.finish(portion.run)
    item = table.get(keys.run(*portion.run))
    last = () if item is None else rewinds.of(Run.of(item)).last
    staying: set[tuple[str, Order]] = set()
    for batch in portion.items:
        time = Item.of(batch).updated_at or 0
        staying.update(
            (key, point_positions.order(point))
            for key, points in metric_history.batch_points(batch).items()
            for point in points
            if not rewinds.are_deleted(last, key, point.step, time)
        )

    puts, deletes = [], []
    for made in metric_history.ending(written):
        points = point_removal.points_of(made)
        kept = [point for point in points if (point.key, point_positions.order(point)) in staying]
        if len(kept) == len(points):
            continue
        operation = point_removal.reduction(made, kept).operation
        if isinstance(operation, Put):
            puts.append(operation.item)
        elif isinstance(operation, Delete):
            deletes.append(operation.key)
    table.batch_write(puts, deletes)


def _rewind_counts(runs: Sequence[Owner]) -> dict[Owner, int]:
    """Returns how many times each of the runs was rewound; leaves out runs that do not exist."""
    references = table.batch_get([keys.run_ref(run_id) for _, run_id in runs])
    return {
        run: RunReference.of(item).rewinds or 0
        for run, item in zip(runs, references, strict=True)
        if item is not None
    }


def _existing(runs: Sequence[Owner]) -> set[Owner]:
    return set(_rewind_counts(runs))


def _is_sampled(item: Raw) -> bool:
    return compaction_sampling.is_due(key_of_item(item), _size(item) / CHECK_EACH_BYTES)


def _size(item: Raw) -> int:
    batch = RunMetricBatch.of(item)
    return _ITEM_BYTES + len(batch.data or b"")


def _run_of(record: Mapping[str, Any]) -> Owner:
    return keys.run_of(key_of_item(record["Keys"]))
