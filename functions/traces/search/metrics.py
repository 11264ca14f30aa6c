"""Computes metrics of traces, their spans and assessments. Nothing is precomputed: a request reads
all traces in its time window, for costs of spans all traces of its experiments, and for plain
counts only the keys of an index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from mlcore import errors, reserved_tags
from mlcore.db.table import table
from mlcore.entities.traces import Trace
from mlcore.http import Request
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import links as trace_links
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces import traces_by_time as trace_pages
from mlcore.repos.traces.traces import StoredTrace
from mlcore.repos.traces.traces_by_time import Window
from mlcore.search import trace_match
from mlcore.search import trace_metrics as language
from mlcore.search.trace_metrics import MetricFilter, MetricQuery, MetricRow
from mlcore.spans.trace_totals import finite_number, token_count
from mlcore.wire.json_text import load_json
from traces import messages as m

MAX_RESULTS: Final = 1000
TRACES_PER_READ: Final = 1000
TRACES_PER_SPAN_READ: Final = 50
STATES: Final = ("ERROR", "IN_PROGRESS", "OK", "STATE_UNSPECIFIED")
_LATEST: Final = 2**63 - 1
_END, _START, _COST, _NAME, _TYPE, _STATUS, _MODEL, _PROVIDER = 1, 3, 5, 6, 7, 8, 9, 10
"""Positions in a :class:`mlcore.repos.traces.span_packs.Node`."""


def query_trace_metrics(message: m.QueryTraceMetrics, request: Request) -> dict[str, Any]:
    query = MetricQuery(
        message.view_type or language.TRACES,
        message.metric_name,
        [
            language.aggregation(
                aggregation.aggregation_type or language.COUNT,
                aggregation.percentile_value if aggregation.has("percentile_value") else None,
            )
            for aggregation in message.aggregations
        ],
        message.dimensions,
        message.time_interval_seconds,
        message.max_results if message.has("max_results") else MAX_RESULTS,
    )
    language.check(query)
    start = message.start_time_ms if message.has("start_time_ms") else None
    end = message.end_time_ms if message.has("end_time_ms") else None
    if query.interval and (start is None or end is None):
        raise errors.InvalidParameterValue(
            "start_time_ms and end_time_ms are required if time_interval_seconds is set"
        )
    owners = canonical_ids(message.experiment_ids)
    filters = [language.parse_filter(text, query.view) for text in message.filters]
    if not (query.aggregations or query.dimensions or query.interval):
        raise errors.BadRequest("Query contains no columns with which to SELECT from.")
    window = Window(
        -(2**63) if start is None else start,
        _LATEST if end is None else end,
    )

    points = language.points(_rows(owners, request.workspace, query, filters, window), query)
    return {"data_points": points} if points else {}


def _rows(
    owners: Sequence[str],
    workspace: str,
    query: MetricQuery,
    filters: Sequence[MetricFilter],
    window: Window,
) -> Iterable[MetricRow]:
    if (
        query.metric == language.TRACE_COUNT
        and not filters
        and "trace_name" not in query.dimensions
    ):
        return _rows_of_keys(owners, workspace, query, window)
    # A span's cost counts at the time of the span, not of its trace.
    by_span = query.view == language.SPANS and query.metric in language.COSTS
    records = trace_pages.newest_first(
        owners, workspace, Window() if by_span else window, None, TRACES_PER_READ
    )
    matches = _trace_test([condition for condition in filters if condition.view == "trace"])
    matching = ((stored, trace) for stored in records if matches(trace := traces.entity(stored)))
    if query.view == language.TRACES:
        return (_row_of_trace(trace, query) for _, trace in matching)
    if query.view == language.ASSESSMENTS:
        return (row for _, trace in matching for row in _rows_of_assessments(trace, query, filters))
    rows = _rows_of_spans(matching, query, filters)
    return (row for row in rows if _inside(row, window)) if by_span else rows


def _rows_of_keys(
    owners: Sequence[str], workspace: str, query: MetricQuery, window: Window
) -> Iterator[MetricRow]:
    """Yields a row per trace for counts, without reading the traces: the keys of an index hold
    their times and states."""
    by_state = "trace_status" in query.dimensions
    for owner in experiments.find_existing(owners, workspace):
        for state in STATES if by_state else (None,):
            index = trace_pages.of_state(state) if state else trace_pages.BY_TIME
            for time in trace_pages.times(owner.experiment_id, window, index):
                yield MetricRow(time, {"trace_status": state}, 1)


def _trace_test(filters: Sequence[MetricFilter]) -> Callable[[Trace], bool]:
    """Returns a function that says whether a trace meets all filters. If a filter names a run,
    reads the run's links to traces."""
    run_ids = [
        condition.value
        for condition in filters
        if (condition.entity, condition.key) == ("metadata", reserved_tags.SOURCE_RUN)
    ]
    linked_traces = table.parallel([partial(trace_links.traces_of, run_id) for run_id in run_ids])
    traces_of_run = dict(zip(run_ids, linked_traces, strict=True))

    def meets(trace: Trace, condition: MetricFilter) -> bool:
        if condition.entity == "status":
            return trace.state == condition.value
        if condition.entity == "tag":
            return trace.tags.get(condition.key) == condition.value
        if (
            condition.key == reserved_tags.SOURCE_RUN
            and trace.trace_id in traces_of_run[condition.value]
        ):
            return True
        return trace.trace_metadata.get(condition.key) == condition.value

    return lambda trace: all(meets(trace, condition) for condition in filters)


def _row_of_trace(trace: Trace, query: MetricQuery) -> MetricRow:
    value: Any = 1
    if query.metric == language.SESSION_COUNT:
        value = trace.trace_metadata.get(reserved_tags.TRACE_SESSION)
    elif query.metric == language.LATENCY:
        value = trace.execution_duration
    elif query.metric in language.TOKENS:
        value = token_count(_amounts(trace, reserved_tags.TRACE_TOKEN_USAGE).get(query.metric))
    dimensions = {
        "trace_name": trace.tags.get(reserved_tags.TRACE_NAME),
        "trace_status": trace.state,
    }
    return MetricRow(trace.request_time, dimensions, value)


def _amounts(trace: Trace, key: str) -> dict[str, Any]:
    """Returns the JSON object in the trace's metadata; {} if none can be parsed."""
    try:
        amounts = load_json(trace.trace_metadata.get(key, "{}"))
    except ValueError:
        return {}
    return amounts if isinstance(amounts, dict) else {}


def _rows_of_assessments(
    trace: Trace, query: MetricQuery, filters: Sequence[MetricFilter]
) -> Iterator[MetricRow]:
    conditions = [condition for condition in filters if condition.view == "assessment"]
    for assessment in trace.assessments:
        fields = {"name": assessment.name, "type": assessment.kind}
        if assessment.valid and all(
            fields[condition.entity] == condition.value for condition in conditions
        ):
            number, _ = trace_match.assessment_number(assessment.value)
            value = 1 if query.metric == language.ASSESSMENT_COUNT else number
            dimensions = {
                "assessment_name": assessment.name,
                "assessment_value": json.dumps(assessment.value),
            }
            yield MetricRow(trace.request_time, dimensions, value)


def _rows_of_spans(
    matching: Iterator[tuple[StoredTrace, Trace]],
    query: MetricQuery,
    filters: Sequence[MetricFilter],
) -> Iterator[MetricRow]:
    positions = {"name": _NAME, "status": _STATUS, "type": _TYPE}
    conditions = [
        (positions[condition.entity], condition.value)
        for condition in filters
        if condition.view == "span"
    ]
    while chunk := list(islice(matching, TRACES_PER_SPAN_READ)):
        owners = [
            span_packs.Owner(
                trace.experiment.workspace, trace.experiment.experiment_id, trace.trace_id
            )
            for trace, _ in chunk
        ]
        for nodes in table.parallel([partial(span_packs.nodes, owner) for owner in owners]):
            for node in nodes.values():
                if all(node[position] == value for position, value in conditions):
                    yield _row_of_span(node, query)


def _row_of_span(node: span_packs.Node, query: MetricQuery) -> MetricRow:
    value: Any = 1
    if query.metric == language.LATENCY:
        value = None if node[_END] is None else (node[_END] - node[_START]) // 1_000_000
    elif query.metric in language.COSTS:
        value = finite_number((node[_COST] or {}).get(query.metric))
    dimensions = {
        "span_name": node[_NAME],
        "span_type": _text(node[_TYPE]),
        "span_status": node[_STATUS],
        "span_model_name": node[_MODEL],
        "span_model_provider": node[_PROVIDER],
    }
    return MetricRow(node[_START] / 1_000_000, dimensions, value)


def _text(value: Any) -> str | None:
    """Returns a text unchanged and any other value as JSON: clients may send any value as the type
    of a span, and values of several types can be neither grouped nor sorted together."""
    return value if isinstance(value, str | None) else json.dumps(value)


def _inside(row: MetricRow, window: Window) -> bool:
    """Whether a row's time is in the window, up to the end of the window's last millisecond."""
    return window.earliest <= row.time < window.latest + 1
