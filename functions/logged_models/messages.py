"""Request messages for logged models. Fields are in the order of MLflow's service.proto.

``path_model_id`` is the id in the URL's path. As on MLflow's server, it names the model; some RPCs
require ``model_id`` in the body as well.
"""

from __future__ import annotations

from typing import Annotated

from mlcore.wire import Int32, Message, array, enum, intlike, item_type_string, required, string

Status = Annotated[
    str | None,
    enum(
        LOGGED_MODEL_STATUS_UNSPECIFIED=0,
        LOGGED_MODEL_PENDING=1,
        LOGGED_MODEL_READY=2,
        LOGGED_MODEL_UPLOAD_FAILED=3,
    ),
]


class Parameter(Message):
    key: str
    value: str


class Tag(Message):
    key: str
    value: str


class Dataset(Message):
    dataset_name: str
    dataset_digest: str


class OrderBy(Message):
    field_name: str
    ascending: bool = True
    dataset_name: str
    dataset_digest: str


class CreateLoggedModel(Message):
    experiment_id: str
    name: str
    model_type: str
    source_run_id: str
    params: list[Parameter]
    tags: list[Tag]
    checks = {
        "experiment_id": (string, required),
        "name": (string,),
        "model_type": (string,),
        "source_run_id": (string,),
        "params": (array,),
        "tags": (array,),
    }


class GetLoggedModel(Message):
    path_model_id: str
    allow_deleted: str
    """Whether a deleted model may be returned, as text: anything but "true" (ignoring case) means
    no."""


class FinalizeLoggedModel(Message):
    path_model_id: str
    model_id: str
    status: Status
    checks = {"model_id": (string, required), "status": (required,)}


class DeleteLoggedModel(Message):
    path_model_id: str


class SetLoggedModelTags(Message):
    path_model_id: str
    tags: list[Tag]
    checks = {"tags": (array,)}


class DeleteLoggedModelTag(Message):
    path_model_id: str
    tag_key: str


class LogLoggedModelParams(Message):
    path_model_id: str
    model_id: str
    params: list[Parameter]
    checks = {"model_id": (string, required), "params": (array,)}


class SearchLoggedModels(Message):
    experiment_ids: list[str]
    filter: str
    datasets: list[Dataset]
    max_results: Int32 = 50
    order_by: list[OrderBy]
    page_token: str
    checks = {
        "experiment_ids": (array, item_type_string, required),
        "filter": (string,),
        "datasets": (array,),
        "max_results": (intlike,),
        "order_by": (array,),
        "page_token": (string,),
    }
