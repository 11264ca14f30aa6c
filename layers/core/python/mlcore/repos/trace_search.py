"""The traces that a filter finds: through an index when one holds all matches, else through the
traces of the experiments, newest first.

Everything is read strongly consistently from the traces themselves. What a condition needs besides
(links of a run, the assessments of a session, spans) is read for traces alone that meet the rest.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from mlcore.db.table import table
from mlcore.entities import Assessment, Experiment, Trace
from mlcore.repos import experiments, span_packs, trace_links, trace_pages, traces
from mlcore.repos.trace_pages import BY_TIME, Place, Through, Window
from mlcore.repos.traces import Record
from mlcore.search import trace_match
from mlcore.search.grammar import OrderBy
from mlcore.search.order import Key
from mlcore.search.trace_filter import (
    ATTRIBUTE,
    METADATA,
    SESSION,
    SOURCE_RUN,
    Condition,
    Filter,
)

READ_TOGETHER = 1000
CHECKED_TOGETHER = 50
"""Traces whose spans, or whose sessions' assessments, are read side by side."""
T = TypeVar("T")
Accepts = Callable[[Experiment], bool]


class Query(NamedTuple):
    wanted: Filter
    ordering: Sequence[OrderBy]
    after: Key | None
    """Where the page before ended."""
    limit: int


Row = tuple[Key, Trace]
"""A trace with its place in the order."""


def find(experiment_ids: Sequence[str], accepts: Accepts, query: Query) -> list[Row]:
    """The first matches after ``query.after``, at most ``query.limit``. Two round trips for the
    newest traces of an experiment."""
    key_of = trace_match.sort_key(query.ordering)
    newest = trace_match.newest_first(query.ordering)
    place = None
    if newest and query.after is not None:
        _, time, _, trace_id = query.after
        place = Place(-int(time), str(trace_id))
    together = query.limit if newest and query.wanted.everything else READ_TOGETHER
    found = matching(experiment_ids, accepts, query.wanted, place, min(together, READ_TOGETHER))
    rows = ((key_of(trace), trace) for trace in found)
    later = (row for row in rows if query.after is None or row[0] > query.after)
    if newest:
        return list(islice(later, query.limit))
    return heapq.nsmallest(query.limit, later, key=_key)


def matching(
    experiment_ids: Sequence[str],
    accepts: Accepts,
    wanted: Filter,
    after: Place | None = None,
    together: int = READ_TOGETHER,
) -> Iterator[Trace]:
    """The traces that a filter accepts, newest first, after a place.

    Args:
        together: how many traces to read at a time.
    """
    links = table.parallel([partial(trace_links.traces_of, run_id) for run_id in wanted.runs])
    holds = trace_match.own_test(wanted.own)

    def accepted(trace: Trace) -> bool:
        return holds(trace) and all(
            trace.trace_metadata.get(SOURCE_RUN) == run_id or trace.trace_id in linked
            for run_id, linked in zip(wanted.runs, links, strict=True)
        )

    records = trace_pages.newest_first(
        experiment_ids,
        accepts,
        Window(wanted.earliest, wanted.latest),
        after,
        together,
        _through(wanted.own),
    )
    rows = ((read, trace) for read in records if accepted(trace := traces.entity(read)))
    if not wanted.assessed and not wanted.spans:
        return (trace for _, trace in rows)
    assessed = _Assessed(wanted.assessed, experiment_ids, accepts)
    return (
        trace
        for chunk in _chunks(rows, CHECKED_TOGETHER)
        for _, trace in _with_spans(assessed.chosen(chunk), wanted)
    )


def _through(conditions: Iterable[Condition]) -> Through:
    """The narrowest index that holds every match."""
    found = BY_TIME
    for kind, key, sign, value in conditions:
        if sign != "=" or not isinstance(value, str):
            continue
        if (kind, key) == (METADATA, SESSION):
            return trace_pages.of_session(value)
        if (kind, key) == (ATTRIBUTE, "status"):
            found = trace_pages.of_state(value)
    return found


_Checked = tuple[Record, Trace]


class _Assessed:
    """Conditions about assessments: a trace meets one by its own, or by one of its session in any
    of the experiments that are searched."""

    def __init__(
        self, conditions: Sequence[Condition], experiment_ids: Sequence[str], accepts: Accepts
    ) -> None:
        self._tests = [
            (trace_match.assessment_test(one), one.operator != "IS NULL") for one in conditions
        ]
        self._experiment_ids = experiment_ids
        self._accepts = accepts
        self._experiments: list[Experiment] | None = None
        self._known: dict[str, list[Assessment]] = {}

    def chosen(self, rows: list[_Checked]) -> list[_Checked]:
        if not self._tests:
            return rows
        self._learn({session for _, trace in rows if (session := _session(trace)) is not None})
        return [row for row in rows if self._holds(row[1])]

    def _holds(self, trace: Trace) -> bool:
        session = _session(trace)
        shared = [] if session is None else self._known[session]
        return all(
            any(map(test, (*trace.assessments, *shared))) is expected
            for test, expected in self._tests
        )

    def _learn(self, sessions: set[str]) -> None:
        unknown = sorted(sessions - self._known.keys())
        if not unknown:
            return
        if self._experiments is None:
            found = experiments.find_many(self._experiment_ids)
            self._experiments = [one for one in found if one is not None and self._accepts(one)]
        for session, records in trace_pages.of_sessions(self._experiments, unknown).items():
            self._known[session] = [
                one
                for read in records
                for one in traces.entity(read).assessments
                if trace_match.of_session(one)
            ]


def _session(trace: Trace) -> str | None:
    return trace.trace_metadata.get(SESSION)


def _with_spans(rows: list[_Checked], wanted: Filter) -> list[_Checked]:
    """The traces that have a span that meets all conditions on spans."""
    if not wanted.spans:
        return rows
    holds = trace_match.span_test(wanted.spans, wanted.spans_from)
    whole = trace_match.reads_content(wanted.spans)

    def has_one(read: Record) -> bool:
        owner = span_packs.Owner(
            read.experiment.workspace, read.experiment.experiment_id, read.trace_id
        )
        if whole:
            return any(holds(node, content) for node, content in span_packs.read(owner))
        return any(holds(node, "") for node in span_packs.nodes(owner).values())

    found = table.parallel([partial(has_one, read) for read, _ in rows])
    return [row for row, has in zip(rows, found, strict=True) if has]


def _chunks(rows: Iterator[T], size: int) -> Iterator[list[T]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _key(row: Row) -> Key:
    return row[0]
