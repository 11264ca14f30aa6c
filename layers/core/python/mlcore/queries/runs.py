"""Searching runs: filter, order, pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlcore import paging
from mlcore.auth.requirements import Reader
from mlcore.entities.runs import Run
from mlcore.entities.stages import VIEW_STAGES
from mlcore.limits.text import check_max_results
from mlcore.repos.experiments.ids import canonical_ids
from mlcore.repos.runs import runs
from mlcore.repos.runs import search as run_search
from mlcore.responses import runs as responses
from mlcore.search import fields, grammar, order
from mlcore.wire.encoding import Encoded


def search(
    workspace: str,
    experiment_texts: Sequence[str],
    filter_string: str,
    view: str,
    limit: int,
    order_by: Sequence[str],
    page_token: str,
    readable: Reader,
    data: Callable[[Run], responses.Json | Encoded] = responses.data,
) -> dict[str, Any]:
    """Two round trips for the newest runs; for others see :mod:`mlcore.repos.runs.search`.
    ``data`` shows metrics, params and tags of a run."""
    check_max_results(limit)
    comparisons = grammar.parse_filter(filter_string, fields.RUN)
    ordering = grammar.parse_order_by(order_by, fields.RUN)
    query = [sorted(set(experiment_texts)), filter_string, view, list(order_by)]
    position = paging.position_of(page_token, query)
    after = None if position is None else order.restore_key(position, ordering, fields.RUN)

    rows = run_search.find(
        [one for one in canonical_ids(experiment_texts) if readable(one)],
        workspace,
        run_search.Query(comparisons, ordering, VIEW_STAGES[view], after, limit + 1),
    )
    found = runs.with_datasets([run for _, run in rows[:limit]])
    page = paging.fitting(found, _weight)
    answer: dict[str, Any] = {}
    if page:
        answer["runs"] = [responses.run(run, data) for run in page]
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
