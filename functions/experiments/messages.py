"""Request messages for experiments. Fields are in the order of MLflow's service.proto."""

from __future__ import annotations

from typing import Annotated

from mlcore.wire import Message, array, enum, intlike, required, string

ViewType = Annotated[str | None, enum(ACTIVE_ONLY=1, DELETED_ONLY=2, ALL=3)]


class ExperimentTag(Message):
    key: str
    value: str


class CreateExperiment(Message):
    name: str
    artifact_location: str
    tags: list[ExperimentTag]
    checks = {"name": (required, string), "artifact_location": (string,), "tags": (array,)}


class GetExperiment(Message):
    experiment_id: str
    checks = {"experiment_id": (required, string)}


class GetExperimentByName(Message):
    experiment_name: str
    checks = {"experiment_name": (required, string)}


class SearchExperiments(Message):
    max_results: int
    page_token: str
    filter: str
    order_by: list[str]
    view_type: ViewType
    checks = {
        "view_type": (intlike,),
        "max_results": (intlike,),
        "order_by": (array,),
        "filter": (string,),
        "page_token": (string,),
    }


class ListExperiments(Message):
    """The request that MLflow clients before 2.0 send to list experiments."""

    view_type: ViewType
    max_results: int
    page_token: str
    checks = {"max_results": (intlike,), "page_token": (string,)}


class UpdateExperiment(Message):
    experiment_id: str
    new_name: str
    checks = {"experiment_id": (required, string), "new_name": (string, required)}


class DeleteExperiment(Message):
    experiment_id: str
    checks = {"experiment_id": (required, string)}


class RestoreExperiment(Message):
    experiment_id: str
    checks = {"experiment_id": (required, string)}


class SetExperimentTag(Message):
    experiment_id: str
    key: str
    value: str
    checks = {"experiment_id": (required, string), "key": (required, string), "value": (string,)}


class DeleteExperimentTag(Message):
    experiment_id: str
    key: str
    checks = {"experiment_id": (required, string), "key": (required, string)}


class SearchDatasets(Message):
    experiment_ids: list[str]
