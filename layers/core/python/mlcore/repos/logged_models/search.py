"""Finds logged models: through an index if one contains all matches, otherwise through all models
of the experiments, newest first. All reads are strongly consistent."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import UPPER_BOUND
from mlcore.db.table import BATCH_GET_KEYS, Page, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.logged_models import LoggedModel
from mlcore.models.logged_models import LoggedModel as LoggedModelItem
from mlcore.models.logged_models import LoggedModelReference
from mlcore.repos.experiments import experiments
from mlcore.repos.logged_models import logged_models
from mlcore.search import logged_models as language
from mlcore.search.logged_models import (
    Access,
    MetricDataset,
    ModelComparison,
    ModelIds,
    ModelOrderBy,
    ModelsByName,
    ModelsByRun,
)
from mlcore.search.sort_keys import Key

PAGE_ITEMS = 500
PAGES_AHEAD = 12
"""For this many experiments, the first page is read before it is known whether they exist."""


class LoggedModelQuery(NamedTuple):
    comparisons: Sequence[ModelComparison]
    datasets: Sequence[MetricDataset]
    ordering: Sequence[ModelOrderBy]
    after: Key | None
    """The order key of the last row of the page before."""
    limit: int

    @property
    def sorted_by_index(self) -> bool:
        return language.newest_first(self.ordering)


Row = tuple[Key, LoggedModel]
"""A model with its key in the order."""

_Found = tuple[Key, LoggedModel, Raw]


def find(experiment_ids: Sequence[str], workspace: str, query: LoggedModelQuery) -> list[Row]:
    """Returns, in the query's order, the first ``query.limit`` of the experiments' logged models
    that match the query and come after the sort key ``query.after``; each with its sort key. One
    round trip for the newest models of an experiment."""
    access = language.access(query.comparisons)
    if isinstance(access, ModelIds):
        streams = [_by_id(experiment_ids, workspace, access)]
    else:
        streams = _streams(experiment_ids, workspace, access, query)
    if query.sorted_by_index:
        matching = heapq.merge(*(_rows(stream, query) for stream in streams), key=_place)
        rows = list(islice(matching, query.limit))
    else:
        matching = (row for stream in streams for row in _rows(stream, query))
        rows = heapq.nsmallest(query.limit, matching, key=_place)
    models = logged_models.entities([item for _, _, item in rows], all_points=True)
    return [(key, model) for (key, _, _), model in zip(rows, models, strict=True)]


def _rows(pages: Iterator[list[Raw]], query: LoggedModelQuery) -> Iterator[_Found]:
    holds = language.predicate(query.comparisons, query.datasets)
    key_of = language.sort_key(query.ordering, query.datasets)
    all_points = language.reads_points(query.comparisons, query.datasets, query.ordering)
    view = LoggedModelItem.of
    for items in pages:
        active = [item for item in items if view(item).stage == ACTIVE]
        models = logged_models.entities(active, all_points=all_points)
        for model, item in zip(models, active, strict=True):
            key = key_of(model)
            if (query.after is None or key > query.after) and holds(model):
                yield key, model, item


def _by_id(experiment_ids: Sequence[str], workspace: str, access: ModelIds) -> Iterator[list[Raw]]:
    """Yields the models with given ids in any of the experiments, in the order of the index."""
    places = _possible_keys(experiment_ids, list(dict.fromkeys(access.model_ids)))
    model_items: list[Raw | None] = []
    known: list[Experiment] = []
    calls: list[Callable[[], None]] = [
        lambda: model_items.extend(table.batch_get(places)),
        lambda: known.extend(experiments.find_existing(experiment_ids, workspace)),
    ]
    table.parallel(calls)
    accepted = {experiment.experiment_id for experiment in known}
    view = LoggedModelItem.of

    def newest_first(item: Raw) -> tuple[int, str]:
        model = view(item)
        return -model.creation_time, model.model_id

    items = [
        item for item in model_items if item is not None and view(item).experiment_id in accepted
    ]
    yield sorted(items, key=newest_first)


def _possible_keys(experiment_ids: Sequence[str], model_ids: Sequence[str]) -> list[keys.Key]:
    """Returns the keys at which models with these ids may be: each id in each of the experiments.
    If one BatchGetItem cannot read all these keys, reads the models' references and returns one key
    for each model."""
    if len(experiment_ids) * len(model_ids) <= BATCH_GET_KEYS:
        return [
            keys.logged_model(experiment_id, model_id)
            for experiment_id in experiment_ids
            for model_id in model_ids
        ]
    searched = set(experiment_ids)
    references = table.batch_get([keys.logged_model_ref(model_id) for model_id in model_ids])
    return [
        keys.logged_model(reference.experiment_id, reference.model_id)
        for reference in map(LoggedModelReference.of, filter(None, references))
        if reference.experiment_id in searched
    ]


def _streams(
    experiment_ids: Sequence[str],
    workspace: str,
    access: Access | None,
    query: LoggedModelQuery,
) -> list[Iterator[list[Raw]]]:
    """Returns one iterator over pages of items for each experiment that exists in the workspace;
    first pages are read in parallel with the experiments."""
    first: dict[str, Page] = {}
    known: list[Experiment] = []

    def read_experiments() -> None:
        known.extend(experiments.find_existing(experiment_ids, workspace))

    def read_page(experiment_id: str) -> None:
        first[experiment_id] = _page(experiment_id, access, query, None)

    calls: list[Callable[[], None]] = [read_experiments]
    calls += [partial(read_page, experiment_id) for experiment_id in experiment_ids[:PAGES_AHEAD]]
    table.parallel(calls)
    return [
        _pages(experiment.experiment_id, access, query, first.get(experiment.experiment_id))
        for experiment in known
    ]


def _pages(
    experiment_id: str, access: Access | None, query: LoggedModelQuery, first: Page | None
) -> Iterator[list[Raw]]:
    page = first or _page(experiment_id, access, query, None)
    while True:
        yield page.items
        if page.last_key is None:
            return
        page = _page(experiment_id, access, query, page.last_key)


def _page(
    experiment_id: str, access: Access | None, query: LoggedModelQuery, start: Raw | None
) -> Page:
    match access:
        case ModelsByName(name):
            index, prefix = "LSI4", keys.lsi4_logged_model_prefix(name)
        case ModelsByRun(run_id):
            index, prefix = "LSI5", keys.lsi5_logged_model_prefix(run_id)
        case _:
            index, prefix = "LSI1", keys.lsi1_logged_model_prefix(ACTIVE)
    last = None
    if query.sorted_by_index and query.after is not None and index == "LSI1":
        last = _index_key(query.after)
    unfiltered = query.sorted_by_index and not query.comparisons and not query.datasets
    return table.query(
        keys.experiment(experiment_id).pk,
        index=index,
        prefix=prefix if last is None else None,
        between=None if last is None else (prefix, last),
        descending=True,
        limit=min(query.limit, PAGE_ITEMS) if unfiltered else PAGE_ITEMS,
        start=start,
    )


def _index_key(after: Key) -> str:
    """Returns the key in LSI1 of the last row of the page before."""
    _, negative_time, *_, model_id = after
    return keys.lsi1_logged_model(ACTIVE, -int(negative_time), str(model_id)) + UPPER_BOUND


def _place(row: _Found) -> Key:
    return row[0]
