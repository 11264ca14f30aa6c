"""The RPCs of what quality is judged with: evaluation datasets, scorers,
label schemas, review queues and issues."""

from __future__ import annotations

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
_V3 = "3.0"

RPCS = (
    post(f"{_DATASETS}/create", m.CreateDataset, datasets.create_dataset, _V3),
    post(f"{_DATASETS}/search", m.SearchEvaluationDatasets, datasets.search_datasets, _V3),
    get(f"{_DATASETS}/search", m.SearchEvaluationDatasets, datasets.search_datasets, _V3),
    get(_DATASET, m.GetDataset, datasets.get_dataset, _V3),
    delete(_DATASET, m.DeleteDataset, datasets.delete_dataset, _V3),
    patch(f"{_DATASET}/tags", m.SetDatasetTags, datasets.set_dataset_tags, _V3),
    delete(f"{_DATASET}/tags/{{key}}", m.DeleteDatasetTag, datasets.delete_dataset_tag, _V3),
    post(f"{_DATASET}/records", m.UpsertDatasetRecords, records.upsert_records, _V3),
    get(f"{_DATASET}/records", m.GetDatasetRecords, records.get_records, _V3),
    delete(f"{_DATASET}/records", m.DeleteDatasetRecords, records.delete_records, _V3),
    get(
        f"{_DATASET}/experiment-ids",
        m.GetDatasetExperimentIds,
        datasets.get_experiment_ids,
        _V3,
    ),
    post(
        f"{_DATASET}/add-experiments",
        m.AddDatasetToExperiments,
        datasets.add_to_experiments,
        _V3,
    ),
    post(
        f"{_DATASET}/remove-experiments",
        m.RemoveDatasetFromExperiments,
        datasets.remove_from_experiments,
        _V3,
    ),
    post(f"{_SCORERS}/register", m.RegisterScorer, scorers.register_scorer, _V3),
    get(f"{_SCORERS}/list", m.ListScorers, scorers.list_scorers, _V3),
    get(f"{_SCORERS}/versions", m.ListScorerVersions, scorers.list_versions, _V3),
    get(f"{_SCORERS}/get", m.GetScorer, scorers.get_scorer, _V3),
    delete(f"{_SCORERS}/delete", m.DeleteScorer, scorers.delete_scorer, _V3),
    get(
        f"{_SCORERS}/online-configs",
        m.GetOnlineScoringConfigs,
        scorers.get_online_configs,
        _V3,
    ),
    put(
        f"{_SCORERS}/online-config",
        m.SetOnlineScoringConfig,
        scorers.set_online_config,
        _V3,
    ),
    post(f"{_SCHEMAS}/create", r.CreateLabelSchema, label_schemas.create_label_schema, _V3),
    get(f"{_SCHEMAS}/get", r.GetLabelSchema, label_schemas.get_label_schema, _V3),
    get(f"{_SCHEMAS}/get-by-name", r.GetLabelSchemaByName, label_schemas.get_by_name, _V3),
    get(f"{_SCHEMAS}/list", r.ListLabelSchemas, label_schemas.list_label_schemas, _V3),
    patch(f"{_SCHEMAS}/update", r.UpdateLabelSchema, label_schemas.update_label_schema, _V3),
    delete(f"{_SCHEMAS}/delete", r.DeleteLabelSchema, label_schemas.delete_label_schema, _V3),
    post(f"{_QUEUES}/create", r.CreateReviewQueue, review_queues.create_review_queue, _V3),
    post(
        f"{_QUEUES}/get-or-create-user",
        r.GetOrCreateUserQueue,
        review_queues.get_or_create_user_queue,
        _V3,
    ),
    get(f"{_QUEUES}/get", r.GetReviewQueue, review_queues.get_review_queue, _V3),
    get(f"{_QUEUES}/get-by-name", r.GetReviewQueueByName, review_queues.get_by_name, _V3),
    get(f"{_QUEUES}/list", r.ListReviewQueues, review_queues.list_review_queues, _V3),
    post(f"{_QUEUES}/update", r.UpdateReviewQueue, review_queues.update_review_queue, _V3),
    post(f"{_QUEUES}/delete", r.DeleteReviewQueue, review_queues.delete_review_queue, _V3),
    post(f"{_QUEUES}/items/add", r.AddItemsToReviewQueue, review_queues.add_items, _V3),
    post(
        f"{_QUEUES}/items/remove",
        r.RemoveItemsFromReviewQueue,
        review_queues.remove_items,
        _V3,
    ),
    get(f"{_QUEUES}/items/list", r.ListReviewQueueItems, review_queues.list_items, _V3),
    post(
        f"{_QUEUES}/items/set-status",
        r.SetReviewQueueItemStatus,
        review_queues.set_item_status,
        _V3,
    ),
    post(_ISSUES, r.CreateIssue, issues.create_issue, _V3),
    post(f"{_ISSUES}/search", r.SearchIssues, issues.search_issues, _V3),
    get(f"{_ISSUES}/{{issue_id}}", r.GetIssue, issues.get_issue, _V3),
    patch(f"{_ISSUES}/{{issue_id}}", r.UpdateIssue, issues.update_issue, _V3),
)

handler = lambda_handler(RPCS)
