"""Searches traces: parses filter and order, and pages the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mlcore import errors, paging
from mlcore.entities.traces import Trace
from mlcore.http import Request
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.traces import search as trace_search
from mlcore.responses import traces as responses
from mlcore.search import trace_match
from mlcore.search.trace_filter import parse_filter, parse_order_by
from traces import messages as m


class _Page(NamedTuple):
    traces: list[Trace]
    token: str | None


def search_traces(message: m.SearchTracesV3, request: Request) -> dict[str, Any]:
    """Searches traces of several experiments. A search for the newest traces without a filter takes
    two round trips to DynamoDB, more if the page is long."""
    ids = [
        location.mlflow_experiment.experiment_id
        for location in message.locations
        if location.mlflow_experiment is not None
    ]
    page = _search(ids, message, request)
    return _answer([responses.trace_info(trace) for trace in page.traces], page.token)


def search_traces_v2(message: m.SearchTraces, request: Request) -> dict[str, Any]:
    page = _search(message.experiment_ids, message, request)
    return _answer([responses.trace_info_v2(trace) for trace in page.traces], page.token)


def _answer(infos: list[dict[str, Any]], token: str | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"traces": infos} if infos else {}
    if token:
        answer["next_page_token"] = token
    return answer


def _search(
    experiment_ids: Sequence[str], message: m.SearchTracesV3 | m.SearchTraces, request: Request
) -> _Page:
    limit = message.max_results
    if limit < 1:
        raise errors.InvalidParameterValue(
            f"Invalid value {limit} for parameter 'max_results' supplied. "
            "It must be a positive integer"
        )
    ordering = parse_order_by(message.order_by)
    conditions = parse_filter(message.filter)
    owners = canonical_ids(experiment_ids)
    query = [sorted(owners), message.filter, list(message.order_by)]
    position = paging.position_of(message.page_token, query)
    after = None if position is None else trace_match.restore_key(position, ordering)

    keyed_traces = trace_search.find(
        owners, request.workspace, trace_search.TraceQuery(conditions, ordering, after, limit + 1)
    )
    page = paging.fitting([trace for _, trace in keyed_traces[:limit]], _weight)
    token = None
    if len(page) < len(keyed_traces):
        token = paging.token(keyed_traces[len(page) - 1][0], query)
    return _Page(page, token)


def _weight(trace: Trace) -> int:
    """Estimates the bytes of a trace's JSON in a response."""
    texts = [*trace.tags, *trace.tags.values(), *trace.trace_metadata]
    texts += [*trace.trace_metadata.values(), trace.request_preview or ""]
    texts.append(trace.response_preview or "")
    assessed = sum(len(str(assessment)) for assessment in trace.assessments)
    return 600 + 10 * len(texts) + paging.weight_of(texts) + 2 * assessed
