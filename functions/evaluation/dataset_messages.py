"""Request messages for evaluation datasets. Fields are in the order of MLflow's protobuf
definitions."""

from __future__ import annotations

from mlcore.wire import Int32, Message, array, intlike, required, string


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
