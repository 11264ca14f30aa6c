"""Tests traces against a filter, and reads the other data that the filter's conditions need:
assessments of the traces' sessions, and spans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from mlcore import reserved_tags
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.entities.traces import Assessment, Trace
from mlcore.repos.experiments import experiments
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces import traces_by_time as trace_pages
from mlcore.repos.traces.traces import StoredTrace
from mlcore.search import trace_match
from mlcore.search.rlike import TimeBudget
from mlcore.search.trace_filter import TraceFilter
from mlcore.search.trace_match import Node

Checked = tuple[StoredTrace, Trace]


class Conditions:
    """Tests whether traces meet a filter. The caller provides the experiments that are searched,
    and the traces that are linked to the runs which the filter names."""

    def __init__(
        self,
        condition: TraceFilter,
        links: Mapping[str, Collection[str]],
        experiment_ids: Sequence[str],
        workspace: str,
    ) -> None:
        """
        Args:
            links: the ids of the traces that are linked to each run of the filter.
        """
        self._wanted = condition
        self._links = links
        budget = TimeBudget()
        self._holds = trace_match.trace_test(condition.own, budget)
        self._span_holds = trace_match.span_test(condition.spans, condition.spans_from, budget)
        self._assessed = _Assessed(
            [
                (trace_match.assessment_test(comparison, budget), comparison.operator != "IS NULL")
                for comparison in condition.assessed
            ],
            experiment_ids,
            workspace,
        )

    @property
    def has_others(self) -> bool:
        return bool(self._wanted.assessed or self._wanted.spans)

    def own(self, records: Iterable[StoredTrace]) -> Iterator[Checked]:
        """Yields (stored trace, trace) for those of the traces that meet the search's conditions on
        the trace's own fields and on the runs to which it is linked."""
        for stored in records:
            trace = traces.entity(stored)
            if self._holds(trace) and all(
                trace.trace_metadata.get(reserved_tags.SOURCE_RUN) == run_id
                or trace.trace_id in self._links[run_id]
                for run_id in self._wanted.runs
            ):
                yield stored, trace

    def others(self, rows: list[Checked]) -> list[Checked]:
        """Returns those of the traces that also meet the search's conditions on assessments and on
        spans. Reads the spans of several traces in parallel.

        Args:
            rows: traces that :meth:`own` has yielded.
        """
        return _with_spans(self._assessed.chosen(rows), self._wanted, self._span_holds)


class _Assessed:
    """Conditions on assessments: a trace meets one by its own assessments, or by those of its
    session in any of the searched experiments."""

    def __init__(
        self,
        tests: Sequence[tuple[Callable[[Assessment], bool], bool]],
        experiment_ids: Sequence[str],
        workspace: str,
    ) -> None:
        """
        Args:
            tests: (test of an assessment, expected): a trace meets the condition if an assessment
                passes the test and this is expected, or if none passes and it is not.
        """
        self._tests = tests
        self._experiment_ids = experiment_ids
        self._workspace = workspace
        self._experiments: list[Experiment] | None = None
        self._known: dict[str, list[Assessment]] = {}

    def chosen(self, rows: list[Checked]) -> list[Checked]:
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
            self._experiments = experiments.find_existing(self._experiment_ids, self._workspace)
        for session, records in trace_pages.of_sessions(self._experiments, unknown).items():
            self._known[session] = [
                assessment
                for trace in records
                for assessment in traces.entity(trace).assessments
                if trace_match.is_session_assessment(assessment)
            ]


def _session(trace: Trace) -> str | None:
    return trace.trace_metadata.get(reserved_tags.TRACE_SESSION)


def _with_spans(
    rows: list[Checked], condition: TraceFilter, holds: Callable[[Node, str], bool]
) -> list[Checked]:
    """Returns those of the traces that have a span which meets all conditions on spans.

    Args:
        holds: (node of a span, its JSON) → whether the span meets all conditions. The node has the
            fields that aggregations need; the JSON is "" if no condition reads it.
    """
    if not condition.spans:
        return rows
    whole = trace_match.reads_content(condition.spans)

    def has_one(trace: StoredTrace) -> bool:
        owner = span_packs.Owner(
            trace.experiment.workspace, trace.experiment.experiment_id, trace.trace_id
        )
        if whole:
            return any(holds(node, content) for node, content in span_packs.read(owner))
        return any(holds(node, "") for node in span_packs.nodes(owner).values())

    matches = table.parallel([partial(has_one, trace) for trace, _ in rows])
    return [row for row, has in zip(rows, matches, strict=True) if has]
