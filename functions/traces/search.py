"""Searching traces: newest first, by time and simple filters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from mlcore import errors, paging
from mlcore.db.table import table
from mlcore.entities import Experiment, Trace
from mlcore.http import Request
from mlcore.limits.experiments import experiment_id
from mlcore.repos import trace_links, trace_pages, traces
from mlcore.repos.trace_pages import Place
from traces import filters, responses
from traces import messages as m

_NEWEST: Final = re.compile(
    r"\s*(?:attributes?\.|trace\.)?timestamp(?:_ms)?\s+desc\s*", re.IGNORECASE
)
READ_TOGETHER: Final = 1000


class _Page(NamedTuple):
    traces: list[Trace]
    token: str | None


def search_traces(message: m.SearchTracesV3, request: Request) -> dict[str, Any]:
    """Two round trips for the newest."""
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


def _answer(found: list[dict[str, Any]], token: str | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"traces": found} if found else {}
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
    for text in message.order_by:
        if not _NEWEST.fullmatch(text):
            raise errors.InvalidParameterValue(f"Invalid order_by clause '{text}'.")
    wanted = filters.parse(message.filter)
    owners = list(dict.fromkeys(map(experiment_id, experiment_ids)))
    query = [sorted(owners), message.filter, list(message.order_by)]
    position = paging.position_of(message.page_token, query)
    linked = table.parallel([_links(run_id) for run_id in wanted.run_ids])

    def accepts(experiment: Experiment) -> bool:
        return experiment.workspace == request.workspace

    def holds(trace: Trace) -> bool:
        return all(test(trace) for test in wanted.tests) and all(
            filters.of_run(trace, run_id, ids)
            for run_id, ids in zip(wanted.run_ids, linked, strict=True)
        )

    selective = bool(wanted.tests or wanted.run_ids)
    rows = trace_pages.newest_first(
        owners,
        accepts,
        wanted.window,
        _place(position),
        READ_TOGETHER if selective else min(limit, READ_TOGETHER),
    )
    found = list(islice(filter(holds, map(traces.entity, rows)), limit))
    page = paging.fitting(found, _weight)
    # As on MLflow's server a full page has a token, whether or not more follows.
    token = None
    if page and (len(page) < len(found) or len(page) == limit):
        last = page[-1]
        token = paging.token([last.request_time, last.trace_id], query)
    return _Page(page, token)


def _links(run_id: str) -> Any:
    return lambda: trace_links.traces_of(run_id)


def _place(position: Sequence[object] | None) -> Place | None:
    if position is None:
        return None
    match position:
        case [int(time), str(trace_id)]:
            return Place(time, trace_id)
    raise errors.InvalidParameterValue("Invalid page token")


def _weight(trace: Trace) -> int:
    texts = [*trace.tags, *trace.tags.values(), *trace.trace_metadata]
    texts += [*trace.trace_metadata.values(), trace.request_preview or ""]
    texts.append(trace.response_preview or "")
    assessed = sum(len(str(one)) for one in trace.assessments)
    return 600 + 10 * len(texts) + paging.weight_of(texts) + 2 * assessed
