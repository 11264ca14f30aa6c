"""Finds the first traces of an order that match a filter, by the cheapest way that is exact.

Newest first, without a condition that an index knows, traces are read in that order until enough
match. Otherwise, for each experiment, whichever comes first:

1. it is small (or the time window, state or session that is asked for): all its traces;
2. a condition's index entries fit a page: the traces that they name;
3. an index has the order: traces in that order until enough match;
4. the index entries of all conditions and the list of all traces are read side by side until none
   can cost less than what has ended.

Whatever names the traces, they are read strongly consistently and tested against the whole filter.
Those that the indexer may be behind with are marked; the marks are read before what it writes, and
those traces are always among the ones looked at. What a condition needs besides (links of a run,
the assessments of a session, spans) is read for traces alone that meet the rest.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, TypeVar

from mlcore.db.keys import Key as Place
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.entities.traces import Trace
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import index as run_index
from mlcore.repos.runs.index import Candidates, Entries
from mlcore.repos.text_lists import Foreseen
from mlcore.repos.traces import index as trace_index
from mlcore.repos.traces import links as trace_links
from mlcore.repos.traces import pages as trace_pages
from mlcore.repos.traces import traces
from mlcore.repos.traces.conditions import Conditions
from mlcore.repos.traces.orders import LONGEST_NAME, Ordered, newest_place, ordered
from mlcore.repos.traces.pages import BY_TIME, Through, Window
from mlcore.repos.traces.traces import StoredTrace
from mlcore.search import trace_match, trace_plan
from mlcore.search.grammar import OrderBy
from mlcore.search.order import Key
from mlcore.search.trace_filter import (
    ATTRIBUTE,
    METADATA,
    NAME_TAG,
    SESSION,
    Condition,
    Filter,
)
from mlcore.search.trace_plan import Ids

_logger = logging.getLogger("mlcore.search")

SMALL_TRACES = 300
"""Up to so many are read, whatever is asked."""
STREAMED_TRACES = 3_000
"""So many are read in an index's order before a filter counts as too selective for it."""
READ_TOGETHER = 1_000
CHECKED_TOGETHER = 50
"""Traces whose spans, or whose sessions' assessments, are read side by side."""
T = TypeVar("T")


class Query(NamedTuple):
    wanted: Filter
    ordering: Sequence[OrderBy]
    after: Key | None
    """Where the page before ended."""
    limit: int


Row = tuple[Key, Trace]
"""A trace with its place in the order."""


def find(experiment_ids: Sequence[str], workspace: str, query: Query) -> list[Row]:
    """The first matches after ``query.after``, at most ``query.limit``. Two round trips for the
    newest traces of an experiment."""
    condition = query.wanted
    accesses = trace_plan.accesses(condition)
    if trace_match.newest_first(query.ordering) and not accesses:
        return _stream(experiment_ids, workspace, query)
    through, window = _through(condition.own), Window(condition.earliest, condition.latest)
    listings = {one: trace_index.listed(one, through, window) for one in experiment_ids}
    found: list[Experiment] = []
    pending: dict[str, set[Place] | None] = {}
    links: dict[str, set[str]] = {}

    def read_experiments() -> None:
        found.extend(experiments.known(experiment_ids, workspace))

    def read_pending(experiment_id: str) -> None:
        pending[experiment_id] = trace_index.pending(experiment_id)

    def read_links(run_id: str) -> None:
        links[run_id] = trace_links.traces_of(run_id)

    calls: list[Callable[[], object]] = [read_experiments]
    if not any(isinstance(access, Ids) for access in accesses):
        calls += [partial(one.read, SMALL_TRACES + 1) for one in listings.values()]
    calls += [partial(read_links, run_id) for run_id in dict.fromkeys(condition.runs)]
    foreseen = Foreseen(experiment_ids, accesses, run_index.TRACE)
    calls += foreseen.calls
    if any(map(trace_plan.is_asynchronous, accesses)):
        calls += [partial(read_pending, one) for one in experiment_ids]
    table.parallel(calls)
    rows: list[Row] = []
    conditions = Conditions(condition, links, experiment_ids, workspace)
    for experiment in found:
        experiment_id = experiment.experiment_id
        search = _Search(experiment, query, conditions, through, window)
        candidates = [
            candidate
            for access in accesses
            if pending.get(experiment_id, set()) is not None
            or not trace_plan.is_asynchronous(access)
            for candidate in _candidates(experiment, access, links, foreseen)
        ]
        late = pending.get(experiment_id) or set()
        rows += search.rows(listings[experiment_id], candidates, late)
    return heapq.nsmallest(query.limit, rows, key=itemgetter(0))


def matching(experiment_ids: Sequence[str], workspace: str, condition: Filter) -> Iterator[Trace]:
    """The traces that a filter accepts, newest first."""
    links = dict(zip(condition.runs, _links(condition.runs), strict=True))
    conditions = Conditions(condition, links, experiment_ids, workspace)
    records = _records(experiment_ids, workspace, condition, None, READ_TOGETHER)
    return _accepted(records, conditions)


def _links(run_ids: Iterable[str]) -> list[set[str]]:
    return table.parallel([partial(trace_links.traces_of, run_id) for run_id in run_ids])


def _candidates(
    experiment: Experiment,
    access: trace_plan.Access,
    links: trace_index.Links,
    foreseen: Foreseen,
) -> list[Candidates]:
    indexed = experiment.indexed.of_traces if experiment.indexed else None
    return trace_index.candidates(experiment.experiment_id, access, indexed, links, foreseen)


def _records(
    experiment_ids: Sequence[str],
    workspace: str,
    condition: Filter,
    after: trace_pages.Place | None,
    page: int,
) -> Iterator[StoredTrace]:
    window = Window(condition.earliest, condition.latest)
    return trace_pages.newest_first(
        experiment_ids, workspace, window, after, page, _through(condition.own)
    )


def _accepted(records: Iterable[StoredTrace], conditions: Conditions) -> Iterator[Trace]:
    """Reads no further than it is asked."""
    checked = conditions.own(records)
    if not conditions.has_others:
        return (trace for _, trace in checked)
    return (
        trace
        for chunk in _chunks(checked, CHECKED_TOGETHER)
        for _, trace in conditions.others(chunk)
    )


def _stream(experiment_ids: Sequence[str], workspace: str, query: Query) -> list[Row]:
    """Newest first without a condition that an index knows: pages until enough match."""
    condition = query.wanted
    key_of = trace_match.sort_key(query.ordering)
    place = newest_place(query.after)
    conditions = Conditions(condition, {}, experiment_ids, workspace)
    records = _records(experiment_ids, workspace, condition, place, min(query.limit, READ_TOGETHER))
    found = _accepted(records, conditions)
    rows = [(key_of(trace), trace) for trace in islice(found, query.limit)]
    for experiment_id in experiment_ids:
        _explain("newest", experiment_id, len(rows), len(rows))
    return rows


class _Search:
    """One experiment is looked at."""

    def __init__(
        self,
        experiment: Experiment,
        query: Query,
        conditions: Conditions,
        through: Through,
        window: Window,
    ) -> None:
        self._experiment = experiment
        self._query = query
        self._conditions = conditions
        self._through = through
        self._window = window
        self._key_of = trace_match.sort_key(query.ordering)

    def rows(
        self, listing: Entries, candidates: Sequence[Candidates], late: set[Place]
    ) -> list[Row]:
        """The first rows of the experiment.

        Args:
            late: traces that entries of the indexer may be wrong about.
        """
        for known in candidates:
            if known.access == Ids.__name__:
                return self._looked_at(known.access, list(known.places()))
        if listing.done:
            return self._looked_at("all", listing.places())
        run_index.begin(candidates)
        if not any(candidate.done for candidate in candidates):
            found = self._in_index_order()
            if found is not None:
                return found
        cheapest, *others = run_index.race([*candidates, Candidates("all", listing)])
        named = cheapest.places()
        for other in others:
            # Each of them names every trace of the answer but the late ones.
            places = other.places()
            named = {place: None for place in named if place in places}
        named.update(dict.fromkeys(late))
        entries = sum(one.seen for one in candidates)
        return self._looked_at(cheapest.access, list(named), entries)

    def _in_index_order(self) -> list[Row] | None:
        """None if no index has the order, or not enough match soon."""
        query = self._query
        page = min(max(query.limit, CHECKED_TOGETHER), READ_TOGETHER)
        found = ordered(
            self._experiment, query.ordering, query.after, self._window, self._through, page
        )
        if found is None or query.limit > STREAMED_TRACES:
            return None
        rows: list[Row] = []
        seen = 0
        for records in found.pages:
            seen += len(records)
            rows = self._better(rows, records)
            if not found.whole and any(map(_is_cut, records)):
                return None
            if len(rows) == query.limit and records and self._passed(found, rows, records[-1]):
                break
            if seen > STREAMED_TRACES:
                return None
        else:
            if not found.whole and len(rows) < query.limit:
                return None
        _explain(found.name, self._experiment.experiment_id, seen, len(rows))
        return rows

    def _passed(self, found: Ordered, rows: list[Row], last: StoredTrace) -> bool:
        """Whether all that follows the last one that was read comes behind the rows."""
        if found.exact:
            return True
        return rows[-1][0][:2] < self._key_of(traces.entity(last))[:2]

    def _looked_at(self, how: str, places: Sequence[Place], entries: int = 0) -> list[Row]:
        rows: list[Row] = []
        for at in range(0, len(places), READ_TOGETHER):
            items = table.batch_get(places[at : at + READ_TOGETHER])
            rows = self._better(
                rows, [traces.of_item(item, self._experiment) for item in items if item is not None]
            )
        _explain(how, self._experiment.experiment_id, len(places), len(rows), entries)
        return rows

    def _better(self, rows: list[Row], records: Iterable[StoredTrace]) -> list[Row]:
        """The first of the rows and of those that match. Those are tested in their order, so that
        no more is read for them than the answer needs."""
        query = self._query
        known = [(self._key_of(checked[1]), checked) for checked in self._conditions.own(records)]
        if query.after is not None:
            known = [row for row in known if row[0] > query.after]
        known.sort(key=itemgetter(0))
        waiting = iter(known)
        while chunk := list(islice(waiting, _together(self._conditions))):
            if len(rows) == query.limit and chunk[0][0] > rows[-1][0]:
                break
            right = self._conditions.others([checked for _, checked in chunk])
            added = [(self._key_of(trace), trace) for _, trace in right]
            rows = heapq.nsmallest(query.limit, [*rows, *added], key=itemgetter(0))
        return rows


def _is_cut(trace: StoredTrace) -> bool:
    return len(trace.document.texts("tags").get(NAME_TAG, "")) > LONGEST_NAME


def _together(conditions: Conditions) -> int:
    return CHECKED_TOGETHER if conditions.has_others else READ_TOGETHER


def _through(conditions: Iterable[Condition]) -> Through:
    """The narrowest index in order of time that holds every match."""
    found = BY_TIME
    for kind, key, sign, value in conditions:
        if sign != "=" or not isinstance(value, str):
            continue
        if (kind, key) == (METADATA, SESSION):
            return trace_pages.of_session(value)
        if (kind, key) == (ATTRIBUTE, "status"):
            found = trace_pages.of_state(value)
    return found


def _chunks(rows: Iterator[T], size: int) -> Iterator[list[T]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _explain(how: str, experiment_id: str, fetched: int, rows: int, entries: int = 0) -> None:
    """Says which way the answer came ("all", the name of an order, or of a plan's access), and what
    was read for it: index entries of conditions, then traces."""
    _logger.debug(
        "search by %s in experiment %s: %d traces read, %d rows, %d entries read",
        how,
        experiment_id,
        fetched,
        rows,
        entries,
    )
