"""Creates, searches, tags and deletes evaluation datasets, and assigns them to experiments."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from evaluation import dataset_messages as m
from mlcore import errors, ids, paging
from mlcore.entities.evaluation.datasets import EvaluationDataset
from mlcore.http import Request
from mlcore.limits.evaluation.dataset_records import USER_TAG, digest
from mlcore.limits.experiments import check_searched
from mlcore.limits.shared_checks import check_max_results
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import dataset_records as evaluation_records
from mlcore.repos.evaluation import datasets as evaluation_datasets
from mlcore.repos.experiments import experiments
from mlcore.responses.evaluation import datasets as responses
from mlcore.search import evaluation_fields, grammar, sort_keys
from mlcore.search.match import predicate
from mlcore.wire.json_text import parse_json_text


def create_dataset(message: m.CreateDataset, request: Request) -> dict[str, Any]:
    """Creates an evaluation dataset. Names need not be unique, and the experiments need not
    exist."""
    tags = {
        key: _tag_text(value)
        for key, value in _json_object(message.tags, "tags").items()
        if value is not None
    }
    now = ids.now_ms()
    dataset = EvaluationDataset(
        dataset_id=f"d-{uuid4().hex}",
        workspace=request.workspace,
        name=message.name,
        digest=digest(message.name, now),
        tags=tags,
        schema=None,
        profile=None,
        created_time=now,
        last_update_time=now,
        created_by=tags.get(USER_TAG),
        last_updated_by=tags.get(USER_TAG),
        experiment_ids=tuple(dict.fromkeys(message.experiment_ids)),
    )
    evaluation_datasets.create(dataset)
    body = responses.dataset(dataset)
    if dataset.experiment_ids:
        body["experiment_ids"] = list(dataset.experiment_ids)
    return {"dataset": body}


def get_dataset(message: m.GetDataset, request: Request) -> dict[str, Any]:
    dataset = evaluation_datasets.find(request.workspace, message.dataset_id)
    if dataset is None:
        raise errors.ResourceDoesNotExist(
            f"Evaluation dataset with id '{message.dataset_id}' not found"
        )
    return {"dataset": responses.dataset(dataset)}


def delete_dataset(message: m.DeleteDataset, request: Request) -> dict[str, Any]:
    """Deletes an evaluation dataset with its records. Deleting a missing dataset is not an
    error."""
    dataset = evaluation_datasets.find(request.workspace, message.dataset_id)
    if dataset is not None:
        evaluation_records.delete_with_dataset(dataset)
    return {}


def search_datasets(message: m.SearchEvaluationDatasets, request: Request) -> dict[str, Any]:
    """Returns a page of matching evaluation datasets. Filters and sorts in memory: each call reads
    all datasets of the workspace, strongly consistently."""
    limit = message.max_results
    if not limit:
        raise errors.InvalidParameterValue(
            "Invalid value None for parameter 'max_results' supplied. It must be a positive integer"
        )
    check_max_results(limit)
    check_searched(message.experiment_ids)
    entity = evaluation_fields.EVALUATION_DATASET
    matches = predicate(grammar.parse_filter(message.filter_string, entity), entity)
    ordering = grammar.parse_order_by(message.order_by, evaluation_fields.EVALUATION_DATASET_ORDER)
    key_of = sort_keys.sort_key(ordering, entity)
    wanted = set(message.experiment_ids)
    query = [request.workspace, sorted(wanted), message.filter_string, list(message.order_by)]
    position = paging.position_of(message.page_token, query)
    after = None if position is None else sort_keys.restore_key(position, ordering, entity)
    keyed = (
        (key_of(dataset), dataset)
        for dataset in evaluation_datasets.of_workspace(request.workspace)
        if (not wanted or wanted.intersection(dataset.experiment_ids)) and matches(dataset)
    )
    following = (pair for pair in keyed if after is None or pair[0] > after)
    rows = heapq.nsmallest(limit + 1, following, key=lambda pair: pair[0])
    page = paging.fitting([dataset for _, dataset in rows[:limit]], _weight)
    body: dict[str, Any] = {}
    if page:
        body["datasets"] = [responses.dataset(dataset) for dataset in page]
    if len(page) < len(rows):
        body["next_page_token"] = paging.token(key_of(page[-1]), query)
    return body


def set_dataset_tags(message: m.SetDatasetTags, request: Request) -> dict[str, Any]:
    """Adds or overwrites tags of an evaluation dataset. A null value leaves a tag unchanged."""
    given = _json_object(message.tags, "tags")
    added = {key: str(value) for key, value in given.items() if value is not None}

    def change(dataset: EvaluationDataset) -> EvaluationDataset:
        return dataset._replace(tags={**dataset.tags, **added})

    if update(message.dataset_id, request, change) is None:
        raise errors.ResourceDoesNotExist(
            f"Could not find evaluation dataset with ID {message.dataset_id}"
        )
    return {}


def delete_dataset_tag(message: m.DeleteDatasetTag, request: Request) -> dict[str, Any]:
    """Deletes a tag of an evaluation dataset. A missing tag or dataset is not an error."""

    def change(dataset: EvaluationDataset) -> EvaluationDataset:
        kept = {key: text for key, text in dataset.tags.items() if key != message.key}
        return dataset._replace(tags=kept)

    update(message.dataset_id, request, change)
    return {}


def get_experiment_ids(message: m.GetDatasetExperimentIds, request: Request) -> dict[str, Any]:
    dataset = evaluation_datasets.find(request.workspace, message.dataset_id)
    if dataset is None or not dataset.experiment_ids:
        return {}
    return {"experiment_ids": list(dataset.experiment_ids)}


def add_to_experiments(message: m.AddDatasetToExperiments, request: Request) -> dict[str, Any]:
    added = tuple(dict.fromkeys(message.experiment_ids))
    if evaluation_datasets.find(request.workspace, message.dataset_id) is None:
        raise _missing(message.dataset_id)
    stored = experiments.find_many(added, request.workspace)
    for experiment_id, experiment in zip(added, stored, strict=True):
        if experiment is None:
            raise errors.ResourceDoesNotExist(f"No Experiment with id={experiment_id}")

    def change(dataset: EvaluationDataset) -> EvaluationDataset:
        joined = tuple(dict.fromkeys((*dataset.experiment_ids, *added)))
        return dataset._replace(experiment_ids=joined, last_update_time=ids.now_ms())

    written = update(message.dataset_id, request, change)
    if written is None:
        raise _missing(message.dataset_id)
    return {"dataset": responses.dataset(written)}


def remove_from_experiments(
    message: m.RemoveDatasetFromExperiments, request: Request
) -> dict[str, Any]:
    """Removes an evaluation dataset from experiments. Experiments that it is not in are ignored."""
    removed = set(message.experiment_ids)

    def change(dataset: EvaluationDataset) -> EvaluationDataset:
        kept = tuple(name for name in dataset.experiment_ids if name not in removed)
        if len(kept) == len(dataset.experiment_ids):
            return dataset
        return dataset._replace(experiment_ids=kept, last_update_time=ids.now_ms())

    written = update(message.dataset_id, request, change)
    if written is None:
        raise _missing(message.dataset_id)
    return {"dataset": responses.dataset(written)}


def update(
    dataset_id: str,
    request: Request,
    change: Callable[[EvaluationDataset], EvaluationDataset],
) -> EvaluationDataset | None:
    """Applies ``change`` to an evaluation dataset with an optimistic write, which is retried after
    concurrent writes. Returns what ``change`` returned; None if the dataset does not exist. If
    ``change`` returns an equal dataset, nothing is written."""

    def attempt() -> EvaluationDataset | None:
        dataset = evaluation_datasets.find(request.workspace, dataset_id)
        if dataset is None:
            return None
        wanted = change(dataset)
        if wanted != dataset:
            evaluation_datasets.replace(wanted)
        return wanted

    return retry_on_conflict("dataset", attempt)


def _missing(dataset_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Dataset '{dataset_id}' not found")


def _json_object(text: str, parameter: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        value = parse_json_text(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise errors.InvalidParameterValue(
            f"Parameter '{parameter}' must be the JSON text of an object."
        )
    return value


def _tag_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _weight(dataset: EvaluationDataset) -> int:
    texts = (dataset.name, dataset.schema or "", *dataset.tags, *dataset.tags.values())
    return 500 + 2 * paging.weight_of(texts)
