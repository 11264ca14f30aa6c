"""Searches and lists experiments, and searches the datasets that their runs use."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any

from experiments import messages as m
from mlcore import paging
from mlcore.auth.permissions import EXPERIMENT, RUN
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import VIEW_STAGES
from mlcore.http import Request
from mlcore.limits.shared_checks import check_max_results
from mlcore.repos.experiments import experiments, name_search
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.runs.search import dataset_search
from mlcore.repos.workspaces import trace_retention
from mlcore.responses import experiments as responses
from mlcore.search import fields, grammar, sort_keys
from mlcore.search.fields import ATTRIBUTE
from mlcore.search.grammar import Comparison
from mlcore.search.match import predicate

READ_BATCH = 1_000
DEFAULT_LIST_RESULTS = 50_000


def search_experiments(message: m.SearchExperiments, request: Request) -> dict[str, Any]:
    """Returns a page of matching experiments. Their ids come from GSI2, or for filters by name from
    GSI5; both indexes may lag by seconds. A filter ``name = …`` uses neither. Each experiment is
    read strongly consistently."""
    check_max_results(message.max_results)
    return _page(message, message.max_results, request)


def list_experiments(message: m.ListExperiments, request: Request) -> dict[str, Any]:
    """Returns experiments ordered by id. Without ``max_results`` MLflow 1.30 returned all; here at
    most 50,000 are returned, as many as fit one response, and a page token if more remain."""
    if message.has("max_results"):
        check_max_results(message.max_results)
    wanted = m.SearchExperiments(
        page_token=message.page_token, order_by=["experiment_id"], view_type=message.view_type
    )
    return _page(wanted, message.max_results or DEFAULT_LIST_RESULTS, request)


def _page(message: m.SearchExperiments, limit: int, request: Request) -> dict[str, Any]:
    view = message.view_type or "ACTIVE_ONLY"
    parsed = grammar.parse_filter(message.filter, fields.EXPERIMENT)
    comparisons = [_with_ids(comparison) for comparison in parsed]
    matches = predicate(comparisons, fields.EXPERIMENT)
    ordering = grammar.parse_order_by(message.order_by, fields.EXPERIMENT)
    key_of = sort_keys.sort_key(ordering, fields.EXPERIMENT)
    query = [request.workspace, message.filter, view, list(message.order_by)]
    position = paging.position_of(message.page_token, query)
    after = (
        None if position is None else sort_keys.restore_key(position, ordering, fields.EXPERIMENT)
    )
    readable = request.may_read(EXPERIMENT)
    keyed = (
        (key_of(experiment), experiment)
        for experiment in _experiments(
            name_search.ids(request.workspace, comparisons), request.workspace
        )
        if experiment.lifecycle_stage in VIEW_STAGES[view]
        and readable(experiment.experiment_id)
        and matches(experiment)
    )
    following = (pair for pair in keyed if after is None or pair[0] > after)
    rows = heapq.nsmallest(limit + 1, following, key=lambda pair: pair[0])
    page = paging.fitting([experiment for _, experiment in rows[:limit]], _weight)
    answer: dict[str, Any] = {}
    if page:
        answer["experiments"] = [
            responses.experiment(experiment, trace_retention.effective(experiment))
            for experiment in page
        ]
    if len(page) < len(rows):
        answer["next_page_token"] = paging.token(key_of(page[-1]), query)
    return answer


def search_datasets(message: m.SearchDatasets, request: Request) -> dict[str, Any]:
    readable = request.may_read(RUN)
    return dataset_search.search(request.workspace, message.experiment_ids, readable)


def _with_ids(comparison: Comparison) -> Comparison:
    """Returns the comparison with experiment ids in canonical form, because MLflow compares ids as
    numbers."""
    value = comparison.value
    if (comparison.kind, comparison.key) != (ATTRIBUTE, "experiment_id"):
        return comparison
    if isinstance(value, tuple):
        return comparison._replace(value=tuple(canonical_ids(value)))
    return comparison._replace(value=canonical_ids([str(value)])[0])


def _experiments(ids: Iterator[str], workspace: str) -> Iterator[Experiment]:
    while chunk := list(islice(ids, READ_BATCH)):
        yield from experiments.find_existing(chunk, workspace)


def _weight(experiment: Experiment) -> int:
    texts = [experiment.name, experiment.artifact_location, *experiment.tags.values()]
    return 400 + 300 * len(experiment.tags) + paging.weight_of(texts)
