"""Follows runs that are settled: ended, deleted, or quiet.

While a run goes on, its metrics are read from the run item, and the indexer leaves them alone. Once
it is settled they are ranked (:mod:`indexer.rank_rows`), its history is packed, and its mark goes,
on the condition that the run still is as it was read. See ``docs/adr/0033``.

Earlier versions had a METRIC item for each metric, which tells where its RANK item is. When their
run is settled again both go: the RANK item first, so whoever dies on the way leaves nothing that
the next one does not find.

Only what takes the stream does this, one batch of a partition at a time: two of them at once could
take away what the other has just put, and no mark would say so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from indexer import text_items
from indexer.child_items import Writes, is_earlier_metric
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
from mlcore.repos.runs import index_keys, marks

FIRST_VERSION = 1
"""Of a run when it is created."""


class Found(NamedTuple):
    """What is derived of a run already."""

    children: Mapping[Key, Raw]
    postings: Sequence[Raw]
    """``FTS_REV`` items."""


def is_settled(run: Run) -> bool:
    """Whether a run is to be followed as a whole: it is marked, and nobody seems to go on."""
    return bool(marks.since(run)) and _rests(run)


def goes_on(run: Run) -> bool:
    """Whether a run is marked and its metrics are not ranked before it rests."""
    return bool(marks.since(run)) and not _rests(run)


def was_followed(run: Run) -> bool:
    """Whether a run was followed before, perhaps by an earlier version."""
    return marks.since(run) != FIRST_VERSION


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


def earlier_ranks(run: Owner) -> list[Raw]:
    """The METRIC items of a run that earlier versions put: one Query."""
    pk = keys.experiment(run[0]).pk
    children = table.query_all(pk, prefix=keys.run_child_prefix(run[1], "METRIC"))
    return list(filter(is_earlier_metric, children))


def without_earlier(run: Owner, metrics: Iterable[Raw]) -> Writes:
    """Takes away METRIC items of earlier versions, after the RANK items that they tell of."""
    found = list(map(RunMetric.of, metrics))
    ranks = [keys.rank_metric(run[0], one.key, one.value, run[1]) for one in found]
    return Writes([], [], [Key(one.PK, one.SK) for one in found], before=ranks)


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
