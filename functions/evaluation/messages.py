"""Request messages for evaluation datasets and scorers. Fields are in the order of MLflow's
protobuf definitions."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Int32, Message, array, intlike, item_type_string, required, string


class CreateDataset(Message):
    name: str
    experiment_ids: list[str]
    schema: str
    profile: str
    created_by: str
    tags: str
    checks = {
        "name": (required, string),
        "experiment_ids": (array,),
        "tags": (string,),
    }


class GetDataset(Message):
    dataset_id: str


class DeleteDataset(Message):
    dataset_id: str


class SearchEvaluationDatasets(Message):
    experiment_ids: list[str]
    filter_string: str
    max_results: Int32 = 1000
    order_by: list[str]
    page_token: str
    checks = {
        "experiment_ids": (array,),
        "filter_string": (string,),
        "max_results": (intlike,),
        "order_by": (array,),
        "page_token": (string,),
    }


class SetDatasetTags(Message):
    dataset_id: str
    tags: str
    checks = {"tags": (required, string)}


class DeleteDatasetTag(Message):
    dataset_id: str
    key: str


class UpsertDatasetRecords(Message):
    dataset_id: str
    records: str
    updated_by: str
    checks = {"records": (required, string)}


class GetDatasetExperimentIds(Message):
    dataset_id: str


class GetDatasetRecords(Message):
    dataset_id: str
    max_results: Int32 = 1000
    page_token: str
    checks = {"max_results": (intlike,), "page_token": (string,)}


class DeleteDatasetRecords(Message):
    dataset_id: str
    dataset_record_ids: list[str]
    checks = {"dataset_record_ids": (array,)}


class AddDatasetToExperiments(Message):
    dataset_id: str
    experiment_ids: list[str]
    checks = {"experiment_ids": (array,)}


class RemoveDatasetFromExperiments(Message):
    dataset_id: str
    experiment_ids: list[str]
    checks = {"experiment_ids": (array,)}


class RegisterScorer(Message):
    experiment_id: str
    name: str
    serialized_scorer: str
    checks = {
        "experiment_id": (required, string),
        "name": (required, string),
        "serialized_scorer": (required, string),
    }


class ListScorers(Message):
    experiment_id: str
    experiment_ids: list[str]
    checks = {"experiment_id": (string,), "experiment_ids": (array, item_type_string)}


class ListScorerVersions(Message):
    experiment_id: str
    name: str
    checks = {"experiment_id": (required, string), "name": (required, string)}


class GetScorer(Message):
    experiment_id: str
    name: str
    version: Int32
    checks = {
        "experiment_id": (required, string),
        "name": (required, string),
        "version": (intlike,),
    }


class DeleteScorer(Message):
    experiment_id: str
    name: str
    version: Int32
    checks = {
        "experiment_id": (required, string),
        "name": (required, string),
        "version": (intlike,),
    }


class GetOnlineScoringConfigs(Message):
    scorer_ids: list[str]
    checks = {"scorer_ids": (required, array, item_type_string)}


class SetOnlineScoringConfig(Message):
    experiment_id: str
    name: str
    sample_rate: Any
    filter_string: str
    checks = {
        "experiment_id": (required, string),
        "name": (required, string),
        "sample_rate": (required,),
    }
