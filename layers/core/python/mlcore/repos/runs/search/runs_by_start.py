"""Runs of experiments in order of their start, read page by page.

The order comes from a local index that holds only keys; the items are then read in batches, in
parallel. That costs the same as an index with all attributes. A page ends not at 1 MB but at 16 MB
for each hundred items, and the first page of keys is read in parallel with the experiments.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import Page, table
from mlcore.entities.experiments import Experiment
from mlcore.models.base import Item
from mlcore.repos.experiments import experiments
from mlcore.repos.index_candidates import own_sort_keys
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.core.runs import StoredRun

PAGE_ITEMS = 1000
PAGES_AHEAD = 12
"""For this many experiments, the first page is read before it is known whether they exist."""


class StartPosition(NamedTuple):
    """A position in the order "newest start first, then smallest run id"."""

    start_time: int
    run_id: str


class _Window(NamedTuple):
    stages: Sequence[str]
    after: StartPosition | None
    items: int


def newest_first(
    experiment_ids: Sequence[str],
    workspace: str,
    stages: Sequence[str],
    after: StartPosition | None = None,
    page_items: int = PAGE_ITEMS,
) -> Iterator[StoredRun]:
    """Yields runs whose stage is one of ``stages``, by start time descending, then run id. All
    reads are strongly consistent.

    Two round trips before the first run of at most :data:`PAGES_AHEAD` experiments: experiments and
    keys, then items. One more for an experiment that was ever deleted or restored.

    Args:
        workspace: experiments of another workspace are ignored.
        after: yields only runs after this position; None to begin with the newest.
        page_items: how many runs of an experiment to read at a time.
    """
    window = _Window(stages, after, page_items)
    ahead = experiment_ids[:PAGES_AHEAD]
    first: dict[str, Page] = {}
    searched: list[Experiment] = []

    def read_experiments() -> None:
        searched.extend(experiments.find_existing(experiment_ids, workspace))

    def read_keys(experiment_id: str) -> None:
        first[experiment_id] = _keys(experiment_id, _own_stage_index(window), window, None)

    calls: list[Callable[[], None]] = [read_experiments]
    calls += [partial(read_keys, experiment_id) for experiment_id in ahead]
    table.parallel(calls)
    streams = [
        _of_one(experiment, window, first.get(experiment.experiment_id)) for experiment in searched
    ]
    if len(streams) == 1:
        return streams[0]
    return heapq.merge(*streams, key=_place)


def _of_one(experiment: Experiment, window: _Window, first: Page | None) -> Iterator[StoredRun]:
    index = _own_stage_index(window)
    if experiment.epoch > 0 and index != "LSI2":
        # The index holds each run's own stage, which an experiment that was deleted or restored
        # overrules.
        index, first = "LSI2", None
    pk = keys.experiment(experiment.experiment_id).pk
    page = first or _keys(experiment.experiment_id, index, window, None)
    while True:
        for item in table.batch_get([Key(pk, sk) for sk in own_sort_keys(page.items)]):
            if item is None:
                continue
            run = runs.of_item(item, experiment)
            if run.stage in window.stages and _follows(run, window.after):
                yield run
        if page.last_key is None:
            return
        page = _keys(experiment.experiment_id, index, window, page.last_key)


def _keys(experiment_id: str, index: str, window: _Window, start: Raw | None) -> Page:
    if index == "LSI1":
        (stage,) = window.stages
        prefix = keys.lsi1_run_prefix(stage)
        last = keys.lsi1_run(stage, *window.after) if window.after else None
    else:
        prefix = keys.lsi2_run_prefix()
        last = keys.lsi2_run(*window.after) if window.after else None
    return table.query(
        keys.experiment(experiment_id).pk,
        index=index,
        prefix=prefix if last is None else None,
        between=None if last is None else (prefix, last),
        descending=True,
        limit=window.items,
        start=start,
        attributes=[Item.SK],
    )


def _own_stage_index(window: _Window) -> str:
    return "LSI1" if len(window.stages) == 1 else "LSI2"


def _place(run: StoredRun) -> tuple[int, str]:
    item = run.item
    return -item.start_time, item.run_id


def _follows(run: StoredRun, after: StartPosition | None) -> bool:
    return after is None or _place(run) > (-after.start_time, after.run_id)
