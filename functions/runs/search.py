"""The rules of searching runs: filter, order, pages."""

from __future__ import annotations

from typing import Any

from mlcore import paging
from mlcore.entities import VIEW_STAGES, Experiment, Run
from mlcore.http import Request
from mlcore.limits.experiments import experiment_id
from mlcore.limits.text import check_max_results
from mlcore.repos import run_search, runs
from mlcore.search import fields, grammar, order
from runs import messages as m
from runs import responses


def search_runs(message: m.SearchRuns, request: Request) -> dict[str, Any]:
    """Two round trips for the newest runs; for others see :mod:`mlcore.repos.run_search`."""
    limit = message.max_results
    check_max_results(limit)
    view = message.run_view_type or "ACTIVE_ONLY"
    comparisons = grammar.parse_filter(message.filter, fields.RUN)
    ordering = grammar.parse_order_by(message.order_by, fields.RUN)
    query = [sorted(set(message.experiment_ids)), message.filter, view, list(message.order_by)]
    position = paging.position_of(message.page_token, query)
    after = None if position is None else order.restore_key(position, ordering, fields.RUN)

    def accepts(experiment: Experiment) -> bool:
        return experiment.workspace == request.workspace

    rows = run_search.find(
        list(dict.fromkeys(map(experiment_id, message.experiment_ids))),
        accepts,
        run_search.Query(comparisons, ordering, VIEW_STAGES[view], after, limit + 1),
    )
    found = runs.entities([read for _, read in rows[:limit]], model_inputs=False)
    page = paging.fitting(found, _weight)
    answer: dict[str, Any] = {}
    if page:
        answer["runs"] = [responses.run(run) for run in page]
    if len(page) < len(rows):
        answer["next_page_token"] = paging.token(rows[len(page) - 1][0], query)
    return answer


def _weight(run: Run) -> int:
    texts = [*run.metrics, *run.params, *run.params.values(), *run.tags, *run.tags.values()]
    for entry in run.dataset_inputs:
        dataset = entry.dataset
        texts += [dataset.source, dataset.schema or "", dataset.profile or ""]
    return (
        600
        + 100 * len(run.metrics)
        + 30 * len(texts)
        + 300 * len(run.dataset_inputs)
        + paging.weight_of(texts)
    )
