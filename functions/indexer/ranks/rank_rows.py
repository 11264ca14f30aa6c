"""Adds the metrics of inactive runs to the index of metric values (ranks): appends them as rows,
the runs of a batch together, and sorts many rows into segments
(:mod:`indexer.ranks.rank_segments`).

A changed value appends another entry. Each entry has its run's version, and older entries are
dropped when rows are sorted or segments merged. So rows may be put twice or by two processes, and
any process may sort them; see ``docs/adr/0056``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from indexer import compaction_sampling
from indexer.ranks import rank_segments
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.sortable import inverted_double_bits
from mlcore.db.table import key_of_item, table
from mlcore.models.runs import Run
from mlcore.models.search_index import RankRows, RankRowsSorted
from mlcore.repos.runs.history import latest_point_text
from mlcore.repos.runs.ranks import metric_ranks, rank_columns
from mlcore.repos.runs.ranks.rank_columns import Ranked, RunRanks

MOST_BYTES: Final = 48_000
"""The rows of an experiment are sorted above this size in bytes: each search reads all of them
(twelve read units)."""
VALUES_EACH: Final = 16
"""Rows with fewer values per metric on average are not sorted: a segment costs at least one write
unit."""
WIDE_BYTES: Final = 400_000
"""Above this size in bytes rows are sorted in any case."""
CHECK_EACH_BYTES: Final = 12_000
"""The size of all rows is checked on average once per this many bytes written."""
ITEM_BYTES: Final = 16_000
"""About how many bytes of rows one item holds, before compression."""
_KEY_BYTES: Final = 150
"""The size of an item of rows without its data."""
_VALUE_BYTES: Final = 10
"""Approximate size of a value in rows, in bytes."""
MINUTE_MS: Final = 60_000


def of_run(item: Run, metrics: Iterable[str] | None = None) -> RunRanks | None:
    """Returns a run's metric values in the form in which the index of metric values stores them as
    unsorted rows: those of the named metrics, or of all; None if the run has none of them."""
    latest = item.metrics or {}
    chosen = latest.keys() if metrics is None else latest.keys() & set(metrics)
    sort_values = {
        key: inverted_double_bits(latest_point_text.parse_latest(key, latest[key]).value)
        for key in sorted(chosen)
    }
    minute = (item.updated_at or 0) // MINUTE_MS
    return RunRanks(item.run_id, item.version, minute, sort_values) if sort_values else None


def put(runs_by_experiment: Mapping[str, Sequence[RunRanks]]) -> list[Raw]:
    """Appends the metric values of runs (by experiment id) to the index of metric values, as items
    whose values are not sorted yet. Returns the items, for :func:`compact_if_due`."""
    items = [
        _item(experiment_id, together)
        for experiment_id, runs in runs_by_experiment.items()
        for together in _portions(runs)
    ]
    table.batch_write(items)
    return items


def compact_if_due(rows: Iterable[Raw]) -> None:
    """Sorts the rows that were appended to an experiment's index of metric values into segments, if
    there are many. Only a sample of the given items (:mod:`indexer.compaction_sampling`) triggers
    this check."""
    sampled_experiments = dict.fromkeys(
        keys.parse(*key_of_item(item)).fields["experiment_id"]
        for item in rows
        if compaction_sampling.is_due(key_of_item(item), _size(item) / CHECK_EACH_BYTES)
    )
    for experiment_id in sampled_experiments:
        all_rows = list(metric_ranks.every_row(experiment_id))
        size = sum(map(_size, all_rows))
        if size > MOST_BYTES:
            by_key = metric_ranks.by_key(all_rows)
            if size > WIDE_BYTES or sum(map(len, by_key.values())) >= VALUES_EACH * len(by_key):
                _sort(experiment_id, all_rows, by_key)


def sort_all(experiment_id: str) -> None:
    """Sorts all rows that were appended to an experiment's index of metric values into segments,
    however few, and merges segments."""
    if rows := list(metric_ranks.every_row(experiment_id)):
        _sort(experiment_id, rows, metric_ranks.by_key(rows))


def _sort(experiment_id: str, rows: Sequence[Raw], by_key: Mapping[str, list[Ranked]]) -> None:
    """Makes one segment of each metric in the rows, increments the sort counter, removes the rows,
    and merges segments. A reader reads either the rows or the increased counter, which makes it
    read the segments again."""
    row_keys = sorted(key_of_item(item) for item in rows)
    digest = blake2b(
        "".join(row_key.sk for row_key in row_keys).encode(), digest_size=8
    ).hexdigest()
    rank_segments.put(
        rank_segments.segment_items(experiment_id, key, 1, digest, rank_columns.current(entries))
        for key, entries in by_key.items()
    )
    _increase_counter(experiment_id)
    table.batch_write(deletes=row_keys)
    rank_segments.merge(experiment_id, sorted(by_key))


def _increase_counter(experiment_id: str) -> None:
    update = Update()
    update.set_once(RankRowsSorted.type, RankRowsSorted.pattern.name)
    update.add(RankRowsSorted.version, 1)
    table.update(keys.rank_rows_sorted(experiment_id), update)


def _portions(runs: Sequence[RunRanks]) -> Iterator[list[RunRanks]]:
    """Yields the runs' values in lists that take about :data:`ITEM_BYTES` in an item."""
    portion: list[RunRanks] = []
    size = 0
    for run in runs:
        portion.append(run)
        size += sum(_VALUE_BYTES + len(key) for key in run.inverted_bits)
        if size > ITEM_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _item(experiment_id: str, runs: Sequence[RunRanks]) -> Raw:
    data = rank_columns.pack_runs(runs)
    key = keys.rank_rows(experiment_id, blake2b(data, digest_size=8).hexdigest())
    return RankRows(PK=key.pk, SK=key.sk, data=data).serialize()


def _size(item: Raw) -> int:
    return _KEY_BYTES + len(RankRows.of(item).data)
