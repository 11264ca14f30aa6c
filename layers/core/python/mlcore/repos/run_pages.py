"""Runs of experiments in order of their start, read page by page from the local indexes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities import Experiment
from mlcore.repos import runs
from mlcore.repos.runs import Record

PAGE_ITEMS = 1000


class Start(NamedTuple):
    """A place in the order "newest start first, then smallest id"."""

    start_time: int
    run_id: str


def newest_first(
    experiments: Sequence[Experiment],
    stages: Sequence[str],
    after: Start | None = None,
    page_items: int = PAGE_ITEMS,
) -> Iterator[Record]:
    """Runs whose stage is one of ``stages``, by start time descending, then run id.

    One Query for each page of an experiment; the items come whole and strongly consistent. The
    first pages of
    several experiments cost one request each.

    Args:
        after: begin with the run that follows this place.
        page_items: how many items a request may read, if one page is known to be enough.
    """
    streams = [_of_one(experiment, stages, after, page_items) for experiment in experiments]
    if len(streams) == 1:
        return streams[0]
    return heapq.merge(*streams, key=_place)


def start_of(read: Record) -> Start:
    return Start(int(read.document.item["start_time"]["N"]), read.run_id)


def _place(read: Record) -> tuple[int, str]:
    start = start_of(read)
    return -start.start_time, start.run_id


def _of_one(
    experiment: Experiment, stages: Sequence[str], after: Start | None, page_items: int
) -> Iterator[Record]:
    pk = keys.experiment(experiment.experiment_id).pk
    if experiment.epoch == 0 and len(stages) == 1:
        index, prefix = "LSI1", keys.lsi1_run_prefix(stages[0])
        last = keys.lsi1_run(stages[0], *after) if after else None
    else:
        # LSI1 holds each run's own stage, which an experiment that was deleted or restored
        # overrules.
        index, prefix = "LSI2", keys.lsi2_run_prefix()
        last = keys.lsi2_run(*after) if after else None
    bounds = {"prefix": prefix} if last is None else {"between": (prefix, last)}
    start = None
    while True:
        page = table.query(
            pk, index=index, descending=True, limit=page_items, start=start, **bounds
        )
        for item in page.items:
            read = runs.record(item, experiment)
            if read.stage in stages and (after is None or _place(read) > (-after[0], after[1])):
                yield read
        start = page.last_key
        if start is None:
            return
