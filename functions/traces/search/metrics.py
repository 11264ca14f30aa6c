"""Metrics of traces, their spans and assessments, made anew from all traces of a time window for
each question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from mlcore import errors
from mlcore.db.table import table
from mlcore.entities.traces import Trace
from mlcore.http import Request
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import links as trace_links
from mlcore.repos.traces import pages as trace_pages
from mlcore.repos.traces import span_packs, traces
from mlcore.repos.traces.pages import Window
from mlcore.repos.traces.traces import StoredTrace
from mlcore.search import trace_match
from mlcore.search import trace_metrics as language
from mlcore.search.trace_metrics import Filter, Query, Row
from mlcore.spans.names import SESSION, SOURCE_RUN, TOKEN_USAGE, TRACE_NAME_TAG
from mlcore.spans.usage import finite
from traces import messages as m

MAX_RESULTS: Final = 1000
READ_TOGETHER: Final = 1000
SPANS_TOGETHER: Final = 50
STATES: Final = ("ERROR", "IN_PROGRESS", "OK", "STATE_UNSPECIFIED")
_LATEST: Final = 2**63 - 1
_END, _START, _COST, _NAME, _TYPE, _STATUS, _MODEL, _PROVIDER = 1, 3, 5, 6, 7, 8, 9, 10


def query_trace_metrics(message: m.QueryTraceMetrics, request: Request) -> dict[str, Any]:
    query = Query(
        message.view_type or language.TRACES,
        message.metric_name,
        [
            language.aggregation(
                one.aggregation_type or language.COUNT,
                one.percentile_value if one.has("percentile_value") else None,
            )
            for one in message.aggregations
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
    window = Window(
        -(2**63) if start is None else start,
        _LATEST if end is None else end,
    )

    points = language.points(_rows(owners, request.workspace, query, filters, window), query)
    return {"data_points": points} if points else {}


def _rows(
    owners: Sequence[str],
    workspace: str,
    query: Query,
    filters: Sequence[Filter],
    window: Window,
) -> Iterable[Row]:
    if (
        query.metric == language.TRACE_COUNT
        and not filters
        and "trace_name" not in query.dimensions
    ):
        return _counted(owners, workspace, query, window)
    by_span = query.view == language.SPANS and query.metric in language.COSTS
    records = trace_pages.newest_first(
        owners, workspace, Window() if by_span else window, None, READ_TOGETHER
    )
    holds = _trace_test([one for one in filters if one.view == "trace"])
    chosen = ((stored, trace) for stored in records if holds(trace := traces.entity(stored)))
    if query.view == language.TRACES:
        return (_of_trace(trace, query) for _, trace in chosen)
    if query.view == language.ASSESSMENTS:
        return (row for _, trace in chosen for row in _of_assessments(trace, query, filters))
    rows = _of_spans(chosen, query, filters)
    return (row for row in rows if _inside(row, window)) if by_span else rows


def _counted(owners: Sequence[str], workspace: str, query: Query, window: Window) -> Iterator[Row]:
    """Counts need no traces: the keys of an index tell times and states."""
    by_state = "trace_status" in query.dimensions
    for owner in experiments.known(owners, workspace):
        for state in STATES if by_state else (None,):
            through = trace_pages.of_state(state) if state else trace_pages.BY_TIME
            for time in trace_pages.times(owner.experiment_id, window, through):
                yield Row(time, {"trace_status": state}, 1)


def _trace_test(filters: Sequence[Filter]) -> Callable[[Trace], bool]:
    runs = [one.value for one in filters if (one.entity, one.key) == ("metadata", SOURCE_RUN)]
    found = table.parallel([partial(trace_links.traces_of, run_id) for run_id in runs])
    linked = dict(zip(runs, found, strict=True))

    def meets(trace: Trace, one: Filter) -> bool:
        if one.entity == "status":
            return trace.state == one.value
        if one.entity == "tag":
            return trace.tags.get(one.key) == one.value
        if one.key == SOURCE_RUN and trace.trace_id in linked[one.value]:
            return True
        return trace.trace_metadata.get(one.key) == one.value

    return lambda trace: all(meets(trace, one) for one in filters)


def _of_trace(trace: Trace, query: Query) -> Row:
    value: Any = 1
    if query.metric == language.SESSION_COUNT:
        value = trace.trace_metadata.get(SESSION)
    elif query.metric == language.LATENCY:
        value = trace.execution_duration
    elif query.metric in language.TOKENS:
        value = _amounts(trace, TOKEN_USAGE).get(query.metric)
    dimensions = {"trace_name": trace.tags.get(TRACE_NAME_TAG), "trace_status": trace.state}
    return Row(trace.request_time, dimensions, value)


def _amounts(trace: Trace, key: str) -> dict[str, Any]:
    try:
        found = json.loads(trace.trace_metadata.get(key, "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _of_assessments(trace: Trace, query: Query, filters: Sequence[Filter]) -> Iterator[Row]:
    wanted = [one for one in filters if one.view == "assessment"]
    for one in trace.assessments:
        fields = {"name": one.name, "type": one.kind}
        if one.valid and all(fields[each.entity] == each.value for each in wanted):
            number, _ = trace_match.aggregate(one.value)
            value = 1 if query.metric == language.ASSESSMENT_COUNT else number
            dimensions = {
                "assessment_name": one.name,
                "assessment_value": json.dumps(one.value),
            }
            yield Row(trace.request_time, dimensions, value)


def _of_spans(
    chosen: Iterator[tuple[StoredTrace, Trace]], query: Query, filters: Sequence[Filter]
) -> Iterator[Row]:
    places = {"name": _NAME, "status": _STATUS, "type": _TYPE}
    wanted = [(places[one.entity], one.value) for one in filters if one.view == "span"]
    while chunk := list(islice(chosen, SPANS_TOGETHER)):
        owners = [
            span_packs.Owner(
                trace.experiment.workspace, trace.experiment.experiment_id, trace.trace_id
            )
            for trace, _ in chunk
        ]
        for nodes in table.parallel([partial(span_packs.nodes, owner) for owner in owners]):
            for node in nodes.values():
                if all(node[place] == value for place, value in wanted):
                    yield _of_span(node, query)


def _of_span(node: span_packs.Node, query: Query) -> Row:
    value: Any = 1
    if query.metric == language.LATENCY:
        value = None if node[_END] is None else (node[_END] - node[_START]) // 1_000_000
    elif query.metric in language.COSTS:
        value = finite((node[_COST] or {}).get(query.metric))
    dimensions = {
        "span_name": node[_NAME],
        "span_type": node[_TYPE],
        "span_status": node[_STATUS],
        "span_model_name": node[_MODEL],
        "span_model_provider": node[_PROVIDER],
    }
    return Row(node[_START] / 1_000_000, dimensions, value)


def _inside(row: Row, window: Window) -> bool:
    """Whole milliseconds count, the last one included."""
    return window.earliest <= row.time < window.latest + 1
