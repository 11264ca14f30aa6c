"""Ranks the metrics of settled runs: rows for runs that are settled together, which are sorted into
segments when they are many; segments are merged (:mod:`indexer.rank_segments`).

Nothing is taken away where a value changes: entries say in which version a run had them, and those
of before go when segments are merged. So rows may be put twice, by two at once, and sorted by
whoever finds many; see ``docs/adr/0056``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final

from indexer import looks, rank_segments
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.sortable import descending_place
from mlcore.db.table import key_in, table
from mlcore.models.index import RankRows, RankRowsSorted
from mlcore.models.runs import Run
from mlcore.repos.runs import points, rank_columns, ranks
from mlcore.repos.runs.rank_columns import Ranked, SettledRun

MOST_BYTES: Final = 48_000
"""Rows of an experiment are sorted when they are more: a search reads them all, with twelve read
units."""
EACH: Final = 16
"""Unless they have fewer values than this of each metric: a segment costs a write unit at least."""
WIDE_BYTES: Final = 400_000
"""More are sorted all the same."""
LOOK_BYTES: Final = 12_000
"""Nobody counts them: so often somebody looks how many they are."""
ITEM_BYTES: Final = 16_000
"""Of rows in one item, before they are compressed."""
_KEY_BYTES: Final = 150
"""What an item of rows takes beside its rows."""
_VALUE_BYTES: Final = 10
"""What a value takes in rows, about."""
MINUTE_MS: Final = 60_000


def of_run(item: Run, metrics: Iterable[str] | None = None) -> SettledRun | None:
    """What is ranked of a run item: all its metrics, or those that are named; None for nothing."""
    latest = item.metrics or {}
    chosen = latest.keys() if metrics is None else latest.keys() & set(metrics)
    places = {
        key: descending_place(points.parse_latest(key, latest[key]).value) for key in sorted(chosen)
    }
    minute = (item.updated_at or 0) // MINUTE_MS
    return SettledRun(item.run_id, item.version, minute, places) if places else None


def put(settled: Mapping[str, Sequence[SettledRun]]) -> list[Raw]:
    """Puts the rows of runs, by experiment; what was put, for :func:`look`."""
    made = [
        _item(experiment_id, together)
        for experiment_id, found in settled.items()
        for together in _portions(found)
    ]
    table.batch_write(made)
    return made


def look(rows: Iterable[Raw]) -> None:
    """Sorts the rows of experiments that have many, if it is time to look: rows say so by their own
    digest, so that those which come twice decide alike."""
    wanted = dict.fromkeys(
        keys.parse(*key_in(item)).fields["experiment_id"]
        for item in rows
        if looks.is_due(key_in(item), _size(item) / LOOK_BYTES)
    )
    for experiment_id in wanted:
        found = list(ranks.every_row(experiment_id))
        size = sum(map(_size, found))
        if size > MOST_BYTES:
            by_key = ranks.by_key(found)
            if size > WIDE_BYTES or sum(map(len, by_key.values())) >= EACH * len(by_key):
                _sort(experiment_id, found, by_key)


def sort_all(experiment_id: str) -> None:
    """Sorts all rows of an experiment, however few, and merges what can be merged."""
    if found := list(ranks.every_row(experiment_id)):
        _sort(experiment_id, found, ranks.by_key(found))


def _sort(experiment_id: str, rows: Sequence[Raw], by_key: Mapping[str, list[Ranked]]) -> None:
    """Rows become segments, one for each metric. Who reads rows finds them until these are there,
    and who did not find them sees by the count that it has to look for them."""
    places = sorted(key_in(item) for item in rows)
    digest = blake2b("".join(place.sk for place in places).encode(), digest_size=8).hexdigest()
    rank_segments.put(
        rank_segments.made(experiment_id, key, 1, digest, rank_columns.current(entries))
        for key, entries in by_key.items()
    )
    _count(experiment_id)
    table.batch_write(deletes=places)
    rank_segments.merge(experiment_id, sorted(by_key))


def _count(experiment_id: str) -> None:
    update = Update()
    update.set_once(RankRowsSorted.type, RankRowsSorted.pattern.name)
    update.add(RankRowsSorted.version, 1)
    table.update(keys.rank_rows_sorted(experiment_id), update)


def _portions(settled: Sequence[SettledRun]) -> Iterator[list[SettledRun]]:
    found: list[SettledRun] = []
    size = 0
    for one in settled:
        found.append(one)
        size += sum(_VALUE_BYTES + len(key) for key in one.places)
        if size > ITEM_BYTES:
            yield found
            found, size = [], 0
    if found:
        yield found


def _item(experiment_id: str, runs: Sequence[SettledRun]) -> Raw:
    data = rank_columns.pack_runs(runs)
    place = keys.rank_rows(experiment_id, blake2b(data, digest_size=8).hexdigest())
    return RankRows(PK=place.pk, SK=place.sk, data=data).serialize()


def _size(item: Raw) -> int:
    return _KEY_BYTES + len(RankRows.of(item).data)
