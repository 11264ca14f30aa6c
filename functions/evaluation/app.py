"""The RPCs of what quality is judged with: evaluation datasets,
scorers."""

from __future__ import annotations

from evaluation import datasets, records, scorers
from evaluation import messages as m
from mlcore.http import delete, get, lambda_handler, patch, post, put

_DATASETS = "/mlflow/datasets"
_DATASET = f"{_DATASETS}/{{dataset_id}}"
_SCORERS = "/mlflow/scorers"
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
)

handler = lambda_handler(RPCS)
