"""The RPCs of what quality is judged with: evaluation datasets, scorers,
label schemas, review queues and issues."""

from __future__ import annotations

from functools import partial

from evaluation import datasets, issues, label_schemas, records, review_queues, scorers
from evaluation import messages as m
from evaluation import review_messages as r
from mlcore.http import delete, get, lambda_handler, patch, post, put

_DATASETS = "/mlflow/datasets"
_DATASET = f"{_DATASETS}/{{dataset_id}}"
_SCORERS = "/mlflow/scorers"
_SCHEMAS = "/mlflow/label-schemas"
_QUEUES = "/mlflow/review-queues"
_ISSUES = "/mlflow/issues"

# MLflow has these under version 3.0 alone.
_get, _post, _put = (partial(verb, version="3.0") for verb in (get, post, put))
_patch, _delete = (partial(verb, version="3.0") for verb in (patch, delete))

RPCS = (
    _post(
        f"{_DATASETS}/create",
        m.CreateDataset,
        datasets.create_dataset,
        "evaluation.update_named_experiments",
    ),
    _post(
        f"{_DATASETS}/search",
        m.SearchEvaluationDatasets,
        datasets.search_datasets,
        "evaluation.read_named_experiments",
    ),
    _get(
        f"{_DATASETS}/search",
        m.SearchEvaluationDatasets,
        datasets.search_datasets,
        "evaluation.read_named_experiments",
    ),
    _get(_DATASET, m.GetDataset, datasets.get_dataset, "evaluation.read_dataset"),
    _delete(_DATASET, m.DeleteDataset, datasets.delete_dataset, "evaluation.delete_dataset"),
    _patch(
        f"{_DATASET}/tags", m.SetDatasetTags, datasets.set_dataset_tags, "evaluation.update_dataset"
    ),
    _delete(
        f"{_DATASET}/tags/{{key}}",
        m.DeleteDatasetTag,
        datasets.delete_dataset_tag,
        "evaluation.update_dataset",
    ),
    _post(
        f"{_DATASET}/records",
        m.UpsertDatasetRecords,
        records.upsert_records,
        "evaluation.update_dataset",
    ),
    _get(
        f"{_DATASET}/records", m.GetDatasetRecords, records.get_records, "evaluation.read_dataset"
    ),
    _delete(
        f"{_DATASET}/records",
        m.DeleteDatasetRecords,
        records.delete_records,
        "evaluation.update_dataset",
    ),
    _get(
        f"{_DATASET}/experiment-ids",
        m.GetDatasetExperimentIds,
        datasets.get_experiment_ids,
        "evaluation.read_dataset",
    ),
    _post(
        f"{_DATASET}/add-experiments",
        m.AddDatasetToExperiments,
        datasets.add_to_experiments,
        "evaluation.add_to_experiments",
    ),
    _post(
        f"{_DATASET}/remove-experiments",
        m.RemoveDatasetFromExperiments,
        datasets.remove_from_experiments,
        "evaluation.update_dataset",
    ),
    _post(
        f"{_SCORERS}/register",
        m.RegisterScorer,
        scorers.register_scorer,
        "evaluation.register_scorer",
        follow="evaluation.registered_scorer",
    ),
    _get(f"{_SCORERS}/list", m.ListScorers, scorers.list_scorers, "evaluation.list_scorers"),
    _get(
        f"{_SCORERS}/versions",
        m.ListScorerVersions,
        scorers.list_versions,
        "evaluation.read_scorer",
    ),
    _get(f"{_SCORERS}/get", m.GetScorer, scorers.get_scorer, "evaluation.read_scorer"),
    _delete(
        f"{_SCORERS}/delete",
        m.DeleteScorer,
        scorers.delete_scorer,
        "evaluation.delete_scorer",
        follow="evaluation.deleted_scorer",
    ),
    _get(
        f"{_SCORERS}/online-configs",
        m.GetOnlineScoringConfigs,
        scorers.get_online_configs,
        "requests.anybody",
    ),
    _put(
        f"{_SCORERS}/online-config",
        m.SetOnlineScoringConfig,
        scorers.set_online_config,
        "evaluation.update_scorer",
    ),
    _post(
        f"{_SCHEMAS}/create",
        r.CreateLabelSchema,
        label_schemas.create_label_schema,
        "experiments.manage_experiment",
    ),
    _get(
        f"{_SCHEMAS}/get", r.GetLabelSchema, label_schemas.get_label_schema, "reviews.read_schema"
    ),
    _get(
        f"{_SCHEMAS}/get-by-name",
        r.GetLabelSchemaByName,
        label_schemas.get_by_name,
        "experiments.read_experiment",
    ),
    _get(
        f"{_SCHEMAS}/list",
        r.ListLabelSchemas,
        label_schemas.list_label_schemas,
        "experiments.read_experiment",
    ),
    _patch(
        f"{_SCHEMAS}/update",
        r.UpdateLabelSchema,
        label_schemas.update_label_schema,
        "reviews.manage_schema",
    ),
    _delete(
        f"{_SCHEMAS}/delete",
        r.DeleteLabelSchema,
        label_schemas.delete_label_schema,
        "reviews.manage_schema",
    ),
    _post(
        f"{_QUEUES}/create",
        r.CreateReviewQueue,
        review_queues.create_review_queue,
        "reviews.create_queue",
    ),
    _post(
        f"{_QUEUES}/get-or-create-user",
        r.GetOrCreateUserQueue,
        review_queues.get_or_create_user_queue,
        "reviews.create_queue",
    ),
    _get(f"{_QUEUES}/get", r.GetReviewQueue, review_queues.get_review_queue, "reviews.view"),
    _get(
        f"{_QUEUES}/get-by-name",
        r.GetReviewQueueByName,
        review_queues.get_by_name,
        "reviews.view_by_name",
    ),
    _get(
        f"{_QUEUES}/list",
        r.ListReviewQueues,
        review_queues.list_review_queues,
        "experiments.read_experiment",
        hides="queues",
    ),
    _post(
        f"{_QUEUES}/update",
        r.UpdateReviewQueue,
        review_queues.update_review_queue,
        "reviews.update",
    ),
    _post(
        f"{_QUEUES}/delete", r.DeleteReviewQueue, review_queues.delete_review_queue, "reviews.prune"
    ),
    _post(
        f"{_QUEUES}/items/add",
        r.AddItemsToReviewQueue,
        review_queues.add_items,
        "reviews.update_queue",
    ),
    _post(
        f"{_QUEUES}/items/remove",
        r.RemoveItemsFromReviewQueue,
        review_queues.remove_items,
        "reviews.prune",
    ),
    _get(f"{_QUEUES}/items/list", r.ListReviewQueueItems, review_queues.list_items, "reviews.view"),
    _post(
        f"{_QUEUES}/items/set-status",
        r.SetReviewQueueItemStatus,
        review_queues.set_item_status,
        "reviews.review",
    ),
    _post(
        _ISSUES,
        r.CreateIssue,
        issues.create_issue,
        "experiments.update_experiment",
        hides="source_runs",
    ),
    _post(
        f"{_ISSUES}/search",
        r.SearchIssues,
        issues.search_issues,
        "reviews.search_issues",
        hides="source_runs",
    ),
    _get(
        f"{_ISSUES}/{{issue_id}}",
        r.GetIssue,
        issues.get_issue,
        "reviews.read_issue",
        hides="source_runs",
    ),
    _patch(
        f"{_ISSUES}/{{issue_id}}",
        r.UpdateIssue,
        issues.update_issue,
        "reviews.update_issue",
        hides="source_runs",
    ),
)

handler = lambda_handler(RPCS)
