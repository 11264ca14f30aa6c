"""Segments of ranked metrics: values of one metric in their order, on pages if they are many.

A segment is put pages first, and goes pages last. A merged one is there before those that it was
made of go, and behind them in key order. Its id follows from theirs, so two who merge the same at
once put the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from indexer import run_stretches
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.models.index import RankPage, RankSegment
from mlcore.repos.runs import rank_columns, ranks
from mlcore.repos.runs.rank_columns import Ranked
from mlcore.repos.runs.ranks import Segment

MERGED: Final = 8
"""So many segments of one level become one of the next."""
MOST_ENTRIES: Final = 65_536
"""Segments are not merged beyond that: 440 pages, two seconds of what a partition takes."""
AT_ONCE: Final = 50_000
"""So many entries are merged in one go, then nothing more."""


class Made(NamedTuple):
    segment: Raw
    pages: Sequence[Raw]


def made(
    experiment_id: str, key: str, level: int, segment_id: str, entries: Sequence[Ranked]
) -> Made:
    """The items of a segment, of values in their order."""
    place = keys.rank_segment(experiment_id, key, level, segment_id)
    model = RankSegment(
        PK=place.pk, SK=place.sk, key=key, level=level, segment_id=segment_id, count=len(entries)
    )
    if len(entries) <= ranks.PAGE_ENTRIES:
        model.data = rank_columns.pack(entries)
        return Made(model.serialize(), [])
    each = ranks.PAGE_ENTRIES
    chunks = [entries[at : at + each] for at in range(0, len(entries), each)]
    bounds = [*(chunk[0].place for chunk in chunks), entries[-1].place]
    model.bounds = rank_columns.pack_places(bounds)
    pages = []
    for number, chunk in enumerate(chunks):
        at = keys.rank_page(experiment_id, key, segment_id, number)
        pages.append(RankPage(PK=at.pk, SK=at.sk, data=rank_columns.pack(chunk)).serialize())
    return Made(model.serialize(), pages)


def put(segments: Iterable[Made]) -> None:
    everything = list(segments)
    table.batch_write([page for one in everything for page in one.pages])
    table.batch_write([one.segment for one in everything])


def merge(experiment_id: str, metrics: Sequence[str]) -> None:
    """Merges segments of some metrics where there are many of one level, the smallest first. What
    is left is merged when rows are sorted again."""
    calls = [partial(ranks.segments, experiment_id, key) for key in metrics]
    groups = [group for found in table.parallel(calls) for group in _groups(found)]
    room = AT_ONCE
    together: list[Callable[[], None]] = []
    for group in sorted(groups, key=_count):
        if room <= 0:
            break
        room -= _count(group)
        together.append(partial(_merge, experiment_id, group))
    table.parallel(together)


def _groups(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Those that are to be merged."""
    by_level: dict[int, list[Segment]] = {}
    for one in segments:
        by_level.setdefault(one.level, []).append(one)
    return [
        group
        for group in by_level.values()
        if len(group) >= MERGED and _count(group) <= MOST_ENTRIES
    ]


def _count(group: Sequence[Segment]) -> int:
    return sum(one.size for one in group)


def _merge(experiment_id: str, group: Sequence[Segment]) -> None:
    """One that lacks a page is left where it is: somebody else merges it, or :func:`clean` does."""
    placed = [one.places(experiment_id) for one in group]
    found = iter(table.batch_get([place for pages in placed for place in pages]))
    whole: list[Segment] = []
    gone: list[Key] = []
    entries: list[Ranked] = []
    for one, pages in zip(group, placed, strict=True):
        items = list(islice(found, len(pages)))
        if None not in items:
            whole.append(one)
            gone += pages
            entries += ranks.values_of(one, items)
    if len(whole) > 1:
        key, level = whole[0].key, whole[0].level
        put([made(experiment_id, key, level + 1, _id(whole), rank_columns.current(entries))])
        remove(experiment_id, whole, gone)


def remove(experiment_id: str, segments: Sequence[Segment], pages: Sequence[Key]) -> None:
    table.batch_write(
        deletes=[
            keys.rank_segment(experiment_id, one.key, one.level, one.segment_id) for one in segments
        ]
    )
    table.batch_write(deletes=pages)


def clean(experiment_id: str) -> None:
    """Replaces segments that name runs which are gone, or lack a page, by what is left of them.
    What a page had has been ranked anew by then."""
    found = list(ranks.every_segment(experiment_id))
    # Behind the segments: a run that they name, and that is not there now, is gone.
    pk = keys.experiment(experiment_id).pk
    there = {keys.parse(pk, one).fields["run_id"] for one in run_stretches.sort_keys(pk)}
    for segment in found:
        pages = segment.places(experiment_id)
        left = ranks.values_of(segment, table.batch_get(pages))
        kept = [one for one in left if one.run_id in there]
        if len(kept) < segment.size:
            if kept:
                put([made(experiment_id, segment.key, segment.level + 1, _id([segment]), kept)])
            remove(experiment_id, [segment], pages)


def _id(group: Iterable[Segment]) -> str:
    """Of what is made of some segments."""
    named = "".join(sorted(one.segment_id for one in group))
    return blake2b(named.encode(), digest_size=8).hexdigest()
