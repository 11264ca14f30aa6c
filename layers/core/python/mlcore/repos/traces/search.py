"""Finds the first traces of an order that match a filter, by the cheapest exact way.

Newest first, without a condition that an index can answer, traces are read in that order until
enough match. Otherwise, for each experiment, the first of these that applies:

1. The experiment (or the time window, state or session asked for) is small: all its traces are
   read.
2. A condition's index entries fit one page: the traces to which these entries refer are read.
3. An index has the order: traces are read in that order until enough match.
4. The index entries of all conditions and the list of all traces are read in parallel, until no
   incomplete one can be cheaper than the cheapest complete one.

All traces are read strongly consistently and tested against the whole filter. Traces that the
indexer has not processed yet have a mark (a key in LSI1). The marks are read before what the
indexer writes, and these traces are always tested. Links of runs, assessments of sessions, and
spans are read only for traces that meet the other conditions.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import NamedTuple, TypeVar

from mlcore import reserved_tags
from mlcore.db import keys
from mlcore.db.keys import Key as ItemKey
from mlcore.db.table import BATCH_GET_KEYS, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.traces import Trace
from mlcore.models.traces import TraceReference
from mlcore.repos import index_candidates
from mlcore.repos.experiments import experiments
from mlcore.repos.index_candidates import Candidates, Entries
from mlcore.repos.text_candidates import Foreseen
from mlcore.repos.traces import links as trace_links
from mlcore.repos.traces import marked_traces, trace_candidates, traces
from mlcore.repos.traces import traces_by_time as trace_pages
from mlcore.repos.traces.condition_tests import Conditions
from mlcore.repos.traces.orders import LONGEST_NAME, Ordered, newest_place, ordered
from mlcore.repos.traces.read_ahead import READ_TOGETHER, ReadAhead
from mlcore.repos.traces.traces import StoredTrace
from mlcore.repos.traces.traces_by_time import BY_TIME, Through, Window
from mlcore.search import trace_match, trace_plan
from mlcore.search.grammar import OrderBy
from mlcore.search.sort_keys import Key
from mlcore.search.trace_filter import ATTRIBUTE, METADATA, TraceCondition, TraceFilter
from mlcore.search.trace_plan import TraceIds

_logger = logging.getLogger("mlcore.search")

SMALL_TRACES = 300
"""Experiments with up to this many traces are read whole, unless the newest traces suffice or the
filter names traces by id."""
STREAMED_TRACES = 3_000
"""Traces read in an index's order before the filter counts as too selective for it."""
CHECKED_TOGETHER = 50
"""Traces whose spans, or sessions' assessments, are read in parallel."""
T = TypeVar("T")


class TraceQuery(NamedTuple):
    wanted: TraceFilter
    ordering: Sequence[OrderBy]
    after: Key | None
    """The order key of the last row of the page before."""
    limit: int


Row = tuple[Key, Trace]
"""A trace with its key in the order."""


def find(experiment_ids: Sequence[str], workspace: str, query: TraceQuery) -> list[Row]:
    """Returns the first traces of the experiments that match a search (``query``), after
    ``query.after`` and at most ``query.limit``, each with its sort key in the search's order. Two
    round trips for the newest traces of an experiment."""
    condition = query.wanted
    accesses = trace_plan.accesses(condition)
    if trace_match.newest_first(query.ordering) and not accesses:
        return _stream(experiment_ids, workspace, query)
    through, window = _through(condition.own), Window(condition.earliest, condition.latest)
    listings = {
        experiment_id: trace_candidates.all_in_window(experiment_id, through, window)
        for experiment_id in experiment_ids
    }
    searched: list[Experiment] = []
    pending: dict[str, set[ItemKey] | None] = {}
    links: dict[str, set[str]] = {}

    def read_experiments() -> None:
        searched.extend(experiments.find_existing(experiment_ids, workspace))

    def read_pending(experiment_id: str) -> None:
        pending[experiment_id] = marked_traces.for_search(experiment_id)

    def read_links(run_id: str) -> None:
        links[run_id] = trace_links.traces_of(run_id)

    calls: list[Callable[[], object]] = [read_experiments]
    if not any(isinstance(access, TraceIds) for access in accesses):
        calls += [partial(listing.read, SMALL_TRACES + 1) for listing in listings.values()]
    calls += [partial(read_links, run_id) for run_id in dict.fromkeys(condition.runs)]
    foreseen = Foreseen(experiment_ids, accesses, index_candidates.TRACE)
    calls += foreseen.calls
    if any(map(trace_plan.is_asynchronous, accesses)):
        calls += [partial(read_pending, experiment_id) for experiment_id in experiment_ids]
    table.parallel(calls)
    rows: list[Row] = []
    conditions = Conditions(condition, links, experiment_ids, workspace)
    owners = _owners(accesses, len(searched))
    small = [listing for each in searched if (listing := listings[each.experiment_id]).done]
    ahead = ReadAhead(listing.candidate_keys() for listing in small)
    for experiment in searched:
        experiment_id = experiment.experiment_id
        search = _Search(experiment, query, conditions, through, window, ahead)
        candidates = [
            candidate
            for access in _within(experiment_id, accesses, owners)
            if pending.get(experiment_id, set()) is not None
            or not trace_plan.is_asynchronous(access)
            for candidate in _candidates(experiment, access, links, foreseen)
        ]
        late = pending.get(experiment_id) or set()
        rows += search.rows(listings[experiment_id], candidates, late)
    return heapq.nsmallest(query.limit, rows, key=itemgetter(0))


def _owners(accesses: Sequence[trace_plan.Access], experiments: int) -> dict[str, str] | None:
    """Returns the experiment of each trace that a filter names by id, so that it is read in its own
    experiment only. None if one BatchGetItem can read all the ids in every experiment."""
    trace_ids = {
        trace_id: None
        for access in accesses
        if isinstance(access, TraceIds)
        for trace_id in access.trace_ids
    }
    if len(trace_ids) * experiments <= BATCH_GET_KEYS:
        return None
    references = table.batch_get([keys.trace_ref(trace_id) for trace_id in trace_ids])
    return {
        reference.trace_id: reference.experiment_id
        for reference in map(TraceReference.of, filter(None, references))
    }


def _within(
    experiment_id: str, accesses: Sequence[trace_plan.Access], owners: Mapping[str, str] | None
) -> list[trace_plan.Access]:
    """Returns the accesses as they apply to one experiment: those that name traces by id keep only
    the ids of the experiment's own traces.

    Args:
        owners: the result of :func:`_owners`; None keeps all ids.
    """
    if owners is None:
        return list(accesses)
    return [
        TraceIds(tuple(each for each in access.trace_ids if owners.get(each) == experiment_id))
        if isinstance(access, TraceIds)
        else access
        for access in accesses
    ]


def matching(
    experiment_ids: Sequence[str], workspace: str, condition: TraceFilter
) -> Iterator[Trace]:
    """Yields those traces of the given experiments that meet the filter, newest first."""
    links = dict(zip(condition.runs, _links(condition.runs), strict=True))
    conditions = Conditions(condition, links, experiment_ids, workspace)
    records = _records(experiment_ids, workspace, condition, None, READ_TOGETHER)
    return _accepted(records, conditions)


def _links(run_ids: Iterable[str]) -> list[set[str]]:
    return table.parallel([partial(trace_links.traces_of, run_id) for run_id in run_ids])


def _candidates(
    experiment: Experiment,
    access: trace_plan.Access,
    links: trace_candidates.Links,
    foreseen: Foreseen,
) -> list[Candidates]:
    indexed = experiment.indexed.of_traces if experiment.indexed else None
    return trace_candidates.candidates(experiment.experiment_id, access, indexed, links, foreseen)


def _records(
    experiment_ids: Sequence[str],
    workspace: str,
    condition: TraceFilter,
    after: trace_pages.TracePosition | None,
    page: int,
) -> Iterator[StoredTrace]:
    window = Window(condition.earliest, condition.latest)
    return trace_pages.newest_first(
        experiment_ids, workspace, window, after, page, _through(condition.own)
    )


def _accepted(records: Iterable[StoredTrace], conditions: Conditions) -> Iterator[Trace]:
    """Yields those traces that meet all conditions of a filter, reading only as many as the caller
    takes."""
    checked = conditions.own(records)
    if not conditions.has_others:
        return (trace for _, trace in checked)
    return (
        trace
        for chunk in _chunks(checked, CHECKED_TOGETHER)
        for _, trace in conditions.others(chunk)
    )


def _stream(experiment_ids: Sequence[str], workspace: str, query: TraceQuery) -> list[Row]:
    """Reads pages of the newest traces until enough match; for filters without a condition that an
    index can answer."""
    condition = query.wanted
    key_of = trace_match.sort_key(query.ordering)
    position = newest_place(query.after)
    conditions = Conditions(condition, {}, experiment_ids, workspace)
    records = _records(
        experiment_ids, workspace, condition, position, min(query.limit, READ_TOGETHER)
    )
    matching = _accepted(records, conditions)
    rows = [(key_of(trace), trace) for trace in islice(matching, query.limit)]
    for experiment_id in experiment_ids:
        _explain("newest", experiment_id, len(rows), len(rows))
    return rows


class _Search:
    """The search of traces in one experiment."""

    def __init__(
        self,
        experiment: Experiment,
        query: TraceQuery,
        conditions: Conditions,
        through: Through,
        window: Window,
        ahead: ReadAhead,
    ) -> None:
        self._ahead = ahead
        self._experiment = experiment
        self._query = query
        self._conditions = conditions
        self._through = through
        self._window = window
        self._key_of = trace_match.sort_key(query.ordering)

    def rows(
        self, listing: Entries, candidates: Sequence[Candidates], late: set[ItemKey]
    ) -> list[Row]:
        """Returns the first matching traces of the experiment with their sort keys.

        Args:
            listing: the traces of the time window, read up to one more than a small experiment has.
            candidates: for each condition that an index answers, the traces that may meet it.
            late: traces that the indexer has not processed, so that index entries may miss them.
        """
        for known in candidates:
            if known.access == TraceIds.__name__:
                return self._matching_rows(known.access, self._keys(known.sort_keys()))
        if listing.done:
            return self._matching_rows("all", listing.candidate_keys())
        index_candidates.read_first_pages(candidates)
        if not any(candidate.done for candidate in candidates):
            rows_in_order = self._in_index_order()
            if rows_in_order is not None:
                return rows_in_order
        cheapest, *others = index_candidates.race(candidates, Candidates("all", listing))
        sort_keys = cheapest.sort_keys()
        for other in others:
            # Each of them names every trace of the answer except marked ones.
            referred = other.sort_keys()
            sort_keys = {sk: None for sk in sort_keys if sk in referred}
        sort_keys.update(dict.fromkeys(key.sk for key in late))
        entries = sum(candidate.seen for candidate in candidates)
        return self._matching_rows(cheapest.access, self._keys(sort_keys), entries)

    def _keys(self, sort_keys: Iterable[str]) -> list[ItemKey]:
        pk = keys.experiment(self._experiment.experiment_id).pk
        return [ItemKey(pk, sk) for sk in sort_keys]

    def _in_index_order(self) -> list[Row] | None:
        """Returns rows read in the order of an index; None if no index has the requested order, or
        too few of the first traces match."""
        query = self._query
        page = min(max(query.limit, CHECKED_TOGETHER), READ_TOGETHER)
        traces_in_order = ordered(
            self._experiment, query.ordering, query.after, self._window, self._through, page
        )
        if traces_in_order is None or query.limit > STREAMED_TRACES:
            return None
        rows: list[Row] = []
        seen = 0
        for records in traces_in_order.pages:
            seen += len(records)
            rows = self._first_with(rows, records)
            if not traces_in_order.whole and any(map(_is_cut, records)):
                return None
            if (
                len(rows) == query.limit
                and records
                and self._passed(traces_in_order, rows, records[-1])
            ):
                break
            if seen > STREAMED_TRACES:
                return None
        else:
            if not traces_in_order.whole and len(rows) < query.limit:
                return None
        _explain(traces_in_order.name, self._experiment.experiment_id, seen, len(rows))
        return rows

    def _passed(self, traces_in_order: Ordered, rows: list[Row], last: StoredTrace) -> bool:
        """Whether every trace after the last one read sorts after the matches found, so that
        reading may stop."""
        if traces_in_order.exact:
            return True
        return rows[-1][0][:2] < self._key_of(traces.entity(last))[:2]

    def _matching_rows(self, how: str, places: Sequence[ItemKey], entries: int = 0) -> list[Row]:
        rows: list[Row] = []
        for at in range(0, len(places), READ_TOGETHER):
            items = self._ahead.batch_get(places[at : at + READ_TOGETHER])
            rows = self._first_with(
                rows, [traces.of_item(item, self._experiment) for item in items if item is not None]
            )
        _explain(how, self._experiment.experiment_id, len(places), len(rows), entries)
        return rows

    def _first_with(self, rows: list[Row], records: Iterable[StoredTrace]) -> list[Row]:
        """Returns the first matches among the matches so far and further traces. Further traces are
        tested in order, so that their spans and assessments are read only as far as needed."""
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
    return len(trace.document.texts("tags").get(reserved_tags.TRACE_NAME, "")) > LONGEST_NAME


def _together(conditions: Conditions) -> int:
    return CHECKED_TOGETHER if conditions.has_others else READ_TOGETHER


def _through(conditions: Iterable[TraceCondition]) -> Through:
    """Returns the index that orders traces by time and contains every match with the fewest other
    traces."""
    through = BY_TIME
    for kind, key, sign, value in conditions:
        if sign != "=" or not isinstance(value, str):
            continue
        if (kind, key) == (METADATA, reserved_tags.TRACE_SESSION):
            return trace_pages.of_session(value)
        if (kind, key) == (ATTRIBUTE, "status"):
            through = trace_pages.of_state(value)
    return through


def _chunks(rows: Iterator[T], size: int) -> Iterator[list[T]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _explain(how: str, experiment_id: str, fetched: int, rows: int, entries: int = 0) -> None:
    """Logs how the answer was found ("all", the name of an order, or of a plan's access), and how
    many index entries and traces were read."""
    _logger.debug(
        "search by %s in experiment %s: %d traces read, %d rows, %d entries read",
        how,
        experiment_id,
        fetched,
        rows,
        entries,
    )
