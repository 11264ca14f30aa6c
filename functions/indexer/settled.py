"""Follows runs that are settled: ended, deleted, or quiet.

While a run goes on, its metrics are read from the run item, and the indexer leaves them alone. Once
it is settled its METRIC and RANK items are made, its history is packed, and its mark goes, on the
condition that the run still is as it was read. See ``docs/adr/0033``.

RANK items lie where their values say. A METRIC item tells which RANK item its metric may have: the
RANK item of its value goes before another value is put there, and that of the new one is put after.
So whoever dies on the way leaves nothing that the next one does not find.

Only what takes the stream does this, one batch of a partition at a time: two of them at once could
take away what the other has just put, and no mark would say so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from indexer import index_items, text_items
from indexer.child_items import Writes, is_outside
from indexer.index_items import INDEXES
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import LAST, Key
from mlcore.db.table import key_in, table
from mlcore.entities.runs import ENDED
from mlcore.entities.stages import DELETED
from mlcore.models.base import Item
from mlcore.models.runs import Run, RunMetric
from mlcore.repos.document import Owner
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import index_keys, marks


class Found(NamedTuple):
    """What is derived of a run already."""

    children: Mapping[Key, Raw]
    postings: Sequence[Raw]
    """``FTS_REV`` items."""


def is_settled(run: Run) -> bool:
    """Whether a run is to be followed as a whole: it is marked, and nobody seems to go on."""
    return bool(marks.since(run)) and _rests(run)


def may_be_ranked(run: Run) -> bool:
    """Whether RANK items of this version may have been made, by whoever was late."""
    return not marks.since(run) or _rests(run)


def _rests(run: Run) -> bool:
    return run.status in ENDED or run.stage == DELETED or run.quiet == run.version


def read(run: Owner) -> Found:
    """The child items of a run, but for its history, and what full text has of it: four Queries."""
    experiment_id, run_id = run
    pk = keys.experiment(experiment_id).pk

    def prefix(kind: str) -> str:
        return keys.run_child_prefix(run_id, kind)

    ranges = (
        (prefix("INPUT"), prefix("LM") + LAST),
        keys.sort_keys_with(prefix("METRIC")),
        (prefix("PARAM"), prefix("TAG") + LAST),
    )
    children = {key_in(item): item for one in ranges for item in table.query_all(pk, between=one)}
    return Found(children, postings(run))


def postings(run: Owner) -> list[Raw]:
    """The ``FTS_REV`` items of a run."""
    pk = keys.experiment(run[0]).pk
    return list(table.query_all(pk, prefix=keys.fts_rev_prefix(text_items.RUN, run[1])))


def metrics(run: Owner, item: Run, found: Found) -> Writes:
    """The METRIC and RANK items of a run, given those METRIC items that are there."""
    latest = item.metrics or {}
    place_of, made = INDEXES["metrics"].place, INDEXES["metrics"].item
    gone: list[Key] = []
    puts: list[Raw] = []
    for key, text in latest.items():
        place = keys.run_metric(run[0], run[1], key)
        there = found.children.get(place)
        child = run_children.MAPS["metrics"].child(place, key, text)
        if there is not None and is_outside(there):
            continue
        if there is None or not same(there, child):
            puts.append(child)
            if there is not None:
                old = ranked(run, RunMetric.of(there))
                gone += [old] if old != place_of(run, key, text) else []
    ranks = [made(run, key, text, item.version) for key, text in latest.items()]
    return Writes(puts, [], [], before=gone, after=ranks)


def metrics_that_moved(run: Owner, item: Run, moved: Mapping[str, set[Key]]) -> Writes:
    """The same where records tell of every change since the run was marked: which metrics changed,
    and where their RANK items may be."""
    latest = item.metrics or {}
    puts, ranks, gone, deletes = [], [], [], []
    for key, places in sorted(moved.items()):
        text, place = latest.get(key), keys.run_metric(run[0], run[1], key)
        current = index_items.place_of(run, "metrics", key, text)
        gone += sorted(places - {current})
        if text is None:
            deletes.append(place)
        else:
            puts.append(run_children.MAPS["metrics"].child(place, key, text))
            # Where none of its places is another one, the RANK item is as it was.
            if places:
                ranks.append(INDEXES["metrics"].item(run, key, text, item.version))
    return Writes(puts, [], deletes, before=gone, after=ranks)


def metrics_of_nobody(run: Owner, moved: Mapping[str, set[Key]]) -> Writes:
    """The same of a run that is gone, whose last record names all that it had."""
    deletes = [keys.run_metric(run[0], run[1], key) for key in sorted(moved)]
    return Writes([], [], deletes, removals=sorted(set().union(*moved.values())))


def places(run: Owner, item: Run) -> set[Key]:
    """Where the RANK items of a run's metrics are."""
    place_of = INDEXES["metrics"].place
    return {place_of(run, key, text) for key, text in (item.metrics or {}).items()}


def ranked(run: Owner, child: RunMetric) -> Key:
    """Where the RANK item of a METRIC item's value is."""
    return keys.rank_metric(run[0], child.key, child.value, run[1])


def same(one: Raw, other: Raw) -> bool:
    """Whether two child items say the same."""
    left_out = (Item.ttl.attr_name, Item.updated_at.attr_name)
    return {k: v for k, v in one.items() if k not in left_out} == {
        k: v for k, v in other.items() if k not in left_out
    }


def clear(item: Run) -> None:
    """Takes the mark of a run away that is followed up to this version. Another write since then
    has a record of its own."""
    mark = item.lsi5sk
    if mark is None:
        return
    update = Update()
    if marks.overflows(item):
        update.set(Run.lsi5sk, keys.lsi5_run_mark(item.run_id, marks.FOR_GOOD))
    elif (primary := index_keys.primary_metric(item)) is not None:
        update.set(Run.lsi5sk, primary)
    else:
        update.remove(Run.lsi5sk)
    if item.quiet is not None:
        update.remove(Run.quiet)
    update.require_equal(Run.version, item.version)
    update.require_equal(Run.lsi5sk, mark)
    with contextlib.suppress(ConditionFailed):
        table.update(Key(item.PK, item.SK), update)
