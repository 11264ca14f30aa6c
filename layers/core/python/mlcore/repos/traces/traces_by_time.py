"""Traces of experiments ordered by request time, read page by page.

The order comes from a local index that holds only keys; traces are then read in batches. The first
page of keys is read in parallel with the experiments.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from mlcore.db import keys, sortable
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.expression import Raw
from mlcore.db.table import Page, key_of_item, table
from mlcore.entities.experiments import Experiment
from mlcore.models.base import KEY
from mlcore.models.traces import Trace as TraceItem
from mlcore.repos.experiments import experiments
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace

PAGE_ITEMS = 1000
GROWTH = 4
"""Each page is this many times as long as the one before, up to :data:`PAGE_ITEMS`."""
PAGES_AHEAD = 12
"""For this many experiments, the first page is read before it is known whether they exist."""
LATEST = 2**63 - 1


class TracePosition(NamedTuple):
    """A position among traces in the order "newest request time, then smallest trace id"."""

    request_time: int
    trace_id: str


class Window(NamedTuple):
    """A range of request times of traces, in milliseconds since the epoch, bounds included."""

    earliest: int = -(2**63)
    latest: int = LATEST


class Through(NamedTuple):
    """A local index that orders traces by request time, and how to build its sort keys, which end
    in the request time and the inverted trace id."""

    name: str
    sort: str
    """The index's sort key attribute."""
    begin: Callable[[int], str]
    """Returns the beginning of the keys with a request time."""
    key: Callable[[int, str], str]

    @property
    def attribute(self) -> ItemAttribute[Any]:
        """The attribute of trace items that is the sort key of this index, as the model of the
        items declares it."""
        attribute: ItemAttribute[Any] = getattr(TraceItem, self.sort)
        return attribute

    def key_of(self, entry: Raw) -> str:
        """Returns the sort key of a trace in this local index, from the trace's index entry."""
        key: str = getattr(TraceItem.of(entry), self.sort)
        return key


BY_TIME = Through("LSI2", TraceItem.lsi2sk.attr_name, keys.lsi2_trace_from, keys.lsi2_trace)


def of_state(state: str) -> Through:
    begin, key = partial(keys.lsi3_trace_from, state), partial(keys.lsi3_trace, state)
    return Through("LSI3", TraceItem.lsi3sk.attr_name, begin, key)


def of_session(session: str) -> Through:
    begin, key = partial(keys.lsi5_trace_from, session), partial(keys.lsi5_trace, session)
    return Through("LSI5", TraceItem.lsi5sk.attr_name, begin, key)


def newest_first(
    experiment_ids: Sequence[str],
    workspace: str,
    window: Window,
    after: TracePosition | None = None,
    page_items: int = PAGE_ITEMS,
    through: Through = BY_TIME,
) -> Iterator[StoredTrace]:
    """Yields traces by request time, newest first, then by id. All reads are strongly consistent.

    One round trip reads the experiments and, of the first :data:`PAGES_AHEAD`, a page of keys; one
    reads a page of keys of each further experiment; one reads all traces of these pages.

    Args:
        workspace: experiments of another workspace are ignored.
        after: yields only traces after this position; None to begin with the newest.
        page_items: keys in the first page of an experiment; later pages may be longer.
        through: an index that contains all wanted traces.
    """
    bounds = bounds_of(through, window, after)
    if bounds is None:
        return iter(())
    first: dict[str, Page] = {}
    searched: list[Experiment] = []

    def read_experiments() -> None:
        searched.extend(experiments.find_existing(experiment_ids, workspace))

    def read_keys(experiment_id: str) -> None:
        first[experiment_id] = page_of(experiment_id, page_items, None)

    def page_of(experiment_id: str, items: int, start: Raw | None) -> Page:
        return _keys(experiment_id, through.name, bounds, items, start)

    def merged() -> Iterator[StoredTrace]:
        searched_ids = [experiment.experiment_id for experiment in searched]
        table.parallel([partial(read_keys, each) for each in searched_ids if each not in first])
        pages = [first[experiment_id] for experiment_id in searched_ids]
        # The merge needs the first trace of each experiment: one call reads all of them.
        items = iter(_items(*pages))
        streams = [
            _of_one(experiment, page_of, page_items, page, list(islice(items, len(page.items))))
            for experiment, page in zip(searched, pages, strict=True)
        ]
        in_order = streams[0] if len(streams) == 1 else heapq.merge(*streams, key=_place)
        last = None if after is None else (-after.request_time, after.trace_id)
        yield from (trace for trace in in_order if last is None or _place(trace) > last)

    calls: list[Callable[[], None]] = [read_experiments]
    calls += [partial(read_keys, experiment_id) for experiment_id in experiment_ids[:PAGES_AHEAD]]
    table.parallel(calls)
    return merged()


def oldest(experiment: Experiment, latest: int, most: int | None) -> list[StoredTrace]:
    """Returns the traces of an experiment up to a request time, oldest first; at most ``most`` of
    them.

    Args:
        latest: milliseconds since the epoch.
        most: None for all.
    """
    pk = keys.experiment(experiment.experiment_id).pk
    bounds = bounds_of(BY_TIME, Window(latest=latest), None)
    places: list[tuple[str, keys.Key]] = []
    for entry in table.query_all(
        pk, index=BY_TIME.name, between=bounds, attributes=[*KEY, BY_TIME.attribute]
    ):
        time = BY_TIME.key_of(entry).rpartition("#")[0]
        if most is not None and len(places) >= most and time > places[most - 1][0]:
            break
        places.append((time, key_of_item(entry)))
    chosen = [key for _, key in sorted(places)[:most]]
    return [
        traces.of_item(item, experiment) for item in table.batch_get(chosen) if item is not None
    ]


def of_sessions(
    experiments: Iterable[Experiment], sessions: Sequence[str]
) -> dict[str, list[StoredTrace]]:
    """Returns all traces of the given sessions (of traces) in experiments, by session. Sends one
    Query per experiment and session (and MB), in parallel, then one BatchGetItem per hundred
    traces, and a Query for each map of a trace that did not fit into the trace's item."""
    places = [(experiment, session) for experiment in experiments for session in sessions]

    def read(experiment: Experiment, session: str) -> list[keys.Key]:
        trace_keys = table.query_all(
            keys.experiment(experiment.experiment_id).pk,
            index="LSI5",
            prefix=keys.lsi5_trace_prefix(session),
            attributes=KEY,
        )
        return list(map(key_of_item, trace_keys))

    located = table.parallel([partial(read, *position) for position in places])
    items = iter(table.batch_get([key for trace_keys in located for key in trace_keys]))
    records: dict[str, list[StoredTrace]] = {session: [] for session in sessions}
    for (experiment, session), trace_keys in zip(places, located, strict=True):
        for _ in trace_keys:
            item = next(items)
            if item is not None:
                records[session].append(traces.of_item(item, experiment))
    return records


def times(experiment_id: str, window: Window, through: Through = BY_TIME) -> Iterator[int]:
    """Yields the request times of an experiment's traces in a range, latest first, from the index
    alone."""
    bounds = bounds_of(through, window, None)
    if bounds is None:
        return
    for entry in table.query_all(
        keys.experiment(experiment_id).pk,
        index=through.name,
        between=bounds,
        descending=True,
        attributes=[through.attribute],
    ):
        yield sortable.parse_integer(through.key_of(entry).rsplit("#", 2)[1])


def bounds_of(
    through: Through, window: Window, after: TracePosition | None = None
) -> tuple[str, str] | None:
    """Returns the inclusive bounds of the sort keys of the traces with request times in ``window``,
    in the index ``through``; None if there can be no such trace.

    Args:
        after: if traces are read newest first: the trace after which to begin; None for all.
    """
    if window.earliest > window.latest:
        return None
    low = through.begin(max(window.earliest, -(2**63)))
    high = through.begin(min(window.latest, LATEST)) + keys.UPPER_BOUND
    if after is not None:
        high = min(high, through.key(*after))
    return None if low > high else (low, high)


def _of_one(
    experiment: Experiment,
    page_of: Callable[[str, int, Raw | None], Page],
    page_items: int,
    page: Page,
    items: Iterable[Raw | None],
) -> Iterator[StoredTrace]:
    """Yields the traces of an experiment: those of its first page, which are read already
    (``items``), and those of the following pages, which it reads."""
    while True:
        for item in items:
            if item is not None:
                yield traces.of_item(item, experiment)
        if page.last_key is None:
            return
        page_items = max(page_items, min(GROWTH * page_items, PAGE_ITEMS))
        page = page_of(experiment.experiment_id, page_items, page.last_key)
        items = _items(page)


def _items(*pages: Page) -> list[Raw | None]:
    """Reads the traces to which pages of keys refer, in order; None for a removed one. One
    BatchGetItem per hundred traces."""
    return table.batch_get([key_of_item(entry) for page in pages for entry in page.items])


def _keys(
    experiment_id: str, index: str, bounds: tuple[str, str], page_items: int, start: Raw | None
) -> Page:
    return table.query(
        keys.experiment(experiment_id).pk,
        index=index,
        between=bounds,
        descending=True,
        limit=page_items,
        start=start,
        attributes=KEY,
    )


def _place(trace: StoredTrace) -> tuple[int, str]:
    item = trace.item
    return -item.request_time, item.trace_id
