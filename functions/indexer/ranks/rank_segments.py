"""Segments of the index of metric values (ranks). A segment holds values of one metric in order: in
its own item, or on pages (further items) if there are many.

The pages of a segment are put before it and removed after it. A merged segment is put before the
segments that it replaces are removed, and comes after them in key order. Its id is a digest of
their ids, so two processes that merge the same segments put the same items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from indexer import run_scan
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.models.search_index import RankPage, RankSegment
from mlcore.repos.runs.ranks import metric_ranks, rank_columns
from mlcore.repos.runs.ranks.metric_ranks import Segment
from mlcore.repos.runs.ranks.rank_columns import Ranked

MERGED: Final = 8
"""Minimum number of segments of one level that are merged into one of the next level."""
MOST_ENTRIES: Final = 65_536
"""Maximum number of values in a merged segment: about 440 pages, two seconds of a partition's write
capacity."""
AT_ONCE: Final = 50_000
"""A merge ends after about this many values; a later merge continues."""


class SegmentItems(NamedTuple):
    """The items of one segment of the index of metric values: the segment's own and its pages."""

    segment: Raw
    pages: Sequence[Raw]


def segment_items(
    experiment_id: str, key: str, level: int, segment_id: str, entries: Sequence[Ranked]
) -> SegmentItems:
    """Makes the items of a segment of the index of metric values: the segment's own, which contains
    the values if they fit on one page, and else its pages.

    Args:
        key: the metric.
        level: 1 for values that were sorted from rows; each merge adds 1.
        entries: the metric's values, sorted.
    """
    item_key = keys.rank_segment(experiment_id, key, level, segment_id)
    model = RankSegment(
        PK=item_key.pk,
        SK=item_key.sk,
        key=key,
        level=level,
        segment_id=segment_id,
        count=len(entries),
    )
    if len(entries) <= metric_ranks.PAGE_ENTRIES:
        model.data = rank_columns.pack(entries)
        return SegmentItems(model.serialize(), [])
    each = metric_ranks.PAGE_ENTRIES
    chunks = [entries[at : at + each] for at in range(0, len(entries), each)]
    bounds = [*(chunk[0].inverted_bits for chunk in chunks), entries[-1].inverted_bits]
    model.bounds = rank_columns.pack_places(bounds)
    pages = []
    for number, chunk in enumerate(chunks):
        at = keys.rank_page(experiment_id, key, segment_id, number)
        pages.append(RankPage(PK=at.pk, SK=at.sk, data=rank_columns.pack(chunk)).serialize())
    return SegmentItems(model.serialize(), pages)


def put(segments: Iterable[SegmentItems]) -> None:
    """Writes segments of the index of metric values: first the items with pages of all the given
    segments, then the segments' own items."""
    all_items = list(segments)
    table.batch_write([page for items in all_items for page in items.pages])
    table.batch_write([items.segment for items in all_items])


def merge(experiment_id: str, metrics: Sequence[str]) -> None:
    """Merges segments of the index of metric values, for each of the given metrics: at least
    :data:`MERGED` segments of one level, with at most :data:`MOST_ENTRIES` values, become one of
    the next level. Groups with the fewest values come first. After :data:`AT_ONCE` values it stops;
    later calls merge the rest."""
    calls = [partial(metric_ranks.segments, experiment_id, key) for key in metrics]
    groups = [
        group
        for segments_of_metric in table.parallel(calls)
        for group in _groups(segments_of_metric)
    ]
    values_left = AT_ONCE
    merges: list[Callable[[], None]] = []
    for group in sorted(groups, key=_count):
        if values_left <= 0:
            break
        values_left -= _count(group)
        merges.append(partial(_merge, experiment_id, group))
    table.parallel(merges)


def _groups(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Splits segments of one metric into groups to merge: segments of one level each."""
    by_level: dict[int, list[Segment]] = {}
    for segment in segments:
        by_level.setdefault(segment.level, []).append(segment)
    return [
        group
        for group in by_level.values()
        if len(group) >= MERGED and _count(group) <= MOST_ENTRIES
    ]


def _count(group: Sequence[Segment]) -> int:
    return sum(segment.size for segment in group)


def _merge(experiment_id: str, group: Sequence[Segment]) -> None:
    """Merges a group of segments into one, without those that lack a page: another process has
    merged them, or :func:`remove_stale` repairs them."""
    page_keys = [segment.page_keys(experiment_id) for segment in group]
    page_items = iter(table.batch_get([page_key for pages in page_keys for page_key in pages]))
    whole: list[Segment] = []
    merged_page_keys: list[Key] = []
    entries: list[Ranked] = []
    for segment, pages in zip(group, page_keys, strict=True):
        segment_pages = list(islice(page_items, len(pages)))
        if None not in segment_pages:
            whole.append(segment)
            merged_page_keys += pages
            entries += metric_ranks.values_of(segment, segment_pages)
    if len(whole) > 1:
        key, level = whole[0].key, whole[0].level
        put(
            [
                segment_items(
                    experiment_id, key, level + 1, _id(whole), rank_columns.current(entries)
                )
            ]
        )
        remove(experiment_id, whole, merged_page_keys)


def remove(experiment_id: str, segments: Sequence[Segment], pages: Sequence[Key]) -> None:
    """Deletes the items of the given segments (lists of sorted values) of an experiment's index of
    metric values, then the items ``pages``, which hold these segments' values."""
    table.batch_write(
        deletes=[
            keys.rank_segment(experiment_id, segment.key, segment.level, segment.segment_id)
            for segment in segments
        ]
    )
    table.batch_write(deletes=pages)


def remove_stale(experiment_id: str) -> None:
    """Replaces the segments of an experiment's index of metric values that name removed runs, or
    lack a page, by segments of their remaining values. The caller has already added the values of
    lost pages to the index again."""
    all_segments = list(metric_ranks.every_segment(experiment_id))
    # Read after the segments: a run that they name and that does not exist now was removed.
    pk = keys.experiment(experiment_id).pk
    run_ids = {
        keys.parse(pk, run_sort_key).fields["run_id"] for run_sort_key in run_scan.run_sort_keys(pk)
    }
    for segment in all_segments:
        pages = segment.page_keys(experiment_id)
        values = metric_ranks.values_of(segment, table.batch_get(pages))
        kept = [value for value in values if value.run_id in run_ids]
        if len(kept) < segment.size:
            if kept:
                put(
                    [
                        segment_items(
                            experiment_id, segment.key, segment.level + 1, _id([segment]), kept
                        )
                    ]
                )
            remove(experiment_id, [segment], pages)


def _id(group: Iterable[Segment]) -> str:
    """Returns the id of the segment that replaces a group of segments."""
    ids = "".join(sorted(segment.segment_id for segment in group))
    return blake2b(ids.encode(), digest_size=8).hexdigest()
