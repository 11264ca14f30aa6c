"""Searches model versions: filter, order, pages."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from mlcore import errors, paging
from mlcore.db.table import table
from mlcore.limits.shared_checks import check_max_results
from mlcore.repos.registry import model_versions
from mlcore.repos.registry import registered_model_search as models
from mlcore.repos.registry.model_versions import StoredModelVersion
from mlcore.repos.registry.registered_models import StoredRegisteredModel
from mlcore.responses import registry as responses
from mlcore.search import grammar, sort_keys
from mlcore.search.fields import ATTRIBUTE
from mlcore.search.grammar import Comparison
from mlcore.search.match import predicate
from mlcore.search.registry_fields import MODEL_VERSION, MODEL_VERSION_ORDER

MOST_RESULTS = 200_000
MODELS_TOGETHER = 16


def search(
    workspace: str,
    filter_string: str,
    limit: int,
    order_by: Sequence[str],
    page_token: str,
    readable: models.ModelReader,
) -> dict[str, Any]:
    """Returns a page of model versions as MLflow's JSON. Versions of models named in the filter, or
    of a run, never lag; the names of other models come from GSI5, which may lag by seconds.

    Args:
        limit: versions per page.
        readable: tells which models the caller may read.
    """
    if limit < 1:
        raise errors.InvalidParameterValue(
            f"Invalid value for max_results. It must be a positive integer, but got {limit}"
        )
    check_max_results(limit, MOST_RESULTS)
    conditions = grammar.parse_filter(filter_string, MODEL_VERSION)
    prompts, comparisons = models.without_prompt_filter(conditions)
    ordering = grammar.parse_order_by(order_by, MODEL_VERSION_ORDER)
    query = [workspace, filter_string, list(order_by)]
    position = paging.position_of(page_token, query)
    after = None if position is None else sort_keys.restore_key(position, ordering, MODEL_VERSION)
    matches = predicate(comparisons, MODEL_VERSION)
    key_of = sort_keys.sort_key(ordering, MODEL_VERSION)
    keyed = (
        (key_of(stored.version), stored.version)
        for stored in _candidates(workspace, comparisons, prompts=prompts)
        if readable(stored.version.name, models.is_prompt(stored.model.model))
        and matches(stored.version)
    )
    following = (pair for pair in keyed if after is None or pair[0] > after)
    rows = heapq.nsmallest(limit + 1, following, key=lambda pair: pair[0])
    page = paging.fitting([version for _, version in rows[:limit]], models.weight_of_version)
    answer: dict[str, Any] = {}
    if page:
        answer["model_versions"] = [responses.model_version(version) for version in page]
    if len(page) < len(rows):
        answer["next_page_token"] = paging.token(rows[len(page) - 1][0], query)
    return answer


def _candidates(
    workspace: str, comparisons: Sequence[Comparison], *, prompts: bool
) -> Iterator[StoredModelVersion]:
    run_ids = _run_ids(comparisons)
    if run_ids is None:
        return _of_models(models.of_names(workspace, comparisons), prompts=prompts)
    return _of_runs(workspace, run_ids, prompts=prompts)


def _run_ids(comparisons: Sequence[Comparison]) -> list[str] | None:
    """Returns the ids of the runs to whose versions the conditions limit the search; None if
    versions of any run can match. Versions without a run match no id."""
    for comparison in comparisons:
        if (comparison.kind, comparison.key) == (ATTRIBUTE, "run_id"):
            if comparison.operator == "=" and comparison.value:
                return [str(comparison.value)]
            if comparison.operator == "IN" and isinstance(comparison.value, tuple):
                values = sorted(set(comparison.value))
                return values if all(values) else None
    return None


def _of_runs(
    workspace: str, run_ids: Sequence[str], *, prompts: bool
) -> Iterator[StoredModelVersion]:
    versions = table.parallel(
        [partial(model_versions.of_run, workspace, run_id) for run_id in run_ids]
    )
    shown: dict[str, bool] = {}
    for stored in (stored for reads in versions for stored in reads):
        model = stored.model
        if model.incarnation not in shown:
            shown[model.incarnation] = prompts or not model_versions.has_prompt_versions(model)
        if shown[model.incarnation]:
            yield stored


def _of_models(
    models: Iterator[StoredRegisteredModel], *, prompts: bool
) -> Iterator[StoredModelVersion]:
    while chunk := list(islice(models, MODELS_TOGETHER)):
        calls = [partial(_versions, model, prompts=prompts) for model in chunk]
        for reads in table.parallel(calls):
            yield from reads


def _versions(model: StoredRegisteredModel, *, prompts: bool) -> list[StoredModelVersion]:
    if not model.model.latest or (not prompts and model_versions.has_prompt_versions(model)):
        return []
    return list(model_versions.all_of(model))
