"""Request messages for label schemas, review queues and issues. Fields are in the order of MLflow's
protobuf definitions."""

from __future__ import annotations

from typing import Annotated, Final

from mlcore.limits.evaluation.issues import check_last_seen, check_metadata
from mlcore.wire import (
    Int32,
    Message,
    array,
    boolean,
    enum,
    intlike,
    item_type_string,
    required,
    string,
    within,
)

MAX_RESULTS: Final = 50_000
_PAGE = within(1, MAX_RESULTS, f"max_results must be between 1 and {MAX_RESULTS}.")

SchemaType = Annotated[str | None, enum(LABEL_SCHEMA_TYPE_UNSPECIFIED=0, FEEDBACK=1, EXPECTATION=2)]
QueueType = Annotated[str | None, enum(REVIEW_QUEUE_TYPE_UNSPECIFIED=0, USER=1, CUSTOM=2)]
ItemType = Annotated[str | None, enum(REVIEW_ITEM_TYPE_UNSPECIFIED=0, TRACE=1)]
Status = Annotated[str | None, enum(REVIEW_STATUS_UNSPECIFIED=0, PENDING=1, COMPLETE=2, DECLINED=3)]


class InputPassFail(Message):
    positive_label: str
    negative_label: str


class InputCategorical(Message):
    options: list[str]
    multi_select: bool


class InputNumeric(Message):
    min_value: float
    max_value: float


class InputText(Message):
    max_length: int


class LabelSchemaInput(Message):
    pass_fail: InputPassFail | None
    categorical: InputCategorical | None
    numeric: InputNumeric | None
    text: InputText | None


class CreateLabelSchema(Message):
    experiment_id: str
    name: str
    type: SchemaType
    input: LabelSchemaInput | None
    instruction: str
    enable_comment: bool
    checks = {"experiment_id": (required, string), "name": (required, string)}


class GetLabelSchema(Message):
    schema_id: str
    checks = {"schema_id": (required, string)}


class GetLabelSchemaByName(Message):
    experiment_id: str
    name: str
    checks = {"experiment_id": (required, string), "name": (required, string)}


class ListLabelSchemas(Message):
    experiment_id: str
    max_results: Int32
    page_token: str
    checks = {"experiment_id": (required, string), "max_results": (intlike, _PAGE)}


class UpdateLabelSchema(Message):
    schema_id: str
    name: str
    instruction: str
    enable_comment: bool
    input: LabelSchemaInput | None
    checks = {"schema_id": (required, string)}


class DeleteLabelSchema(Message):
    schema_id: str
    checks = {"schema_id": (required, string)}


class CreateReviewQueue(Message):
    experiment_id: str
    name: str
    queue_type: QueueType
    created_by: str
    users: list[str]
    schema_ids: list[str]
    checks = {"experiment_id": (required, string), "name": (required, string)}


class GetOrCreateUserQueue(Message):
    experiment_id: str
    user: str
    created_by: str
    checks = {"experiment_id": (required, string), "user": (required, string)}


class GetReviewQueue(Message):
    queue_id: str
    checks = {"queue_id": (required, string)}


class GetReviewQueueByName(Message):
    experiment_id: str
    name: str
    checks = {"experiment_id": (required, string), "name": (required, string)}


class ListReviewQueues(Message):
    experiment_id: str
    user: str
    max_results: Int32
    page_token: str
    item_id: str
    checks = {"experiment_id": (required, string), "max_results": (intlike, _PAGE)}


class UpdateReviewQueue(Message):
    queue_id: str
    update_users: bool
    users: list[str]
    update_schema_ids: bool
    schema_ids: list[str]
    name: str
    new_owner: str
    checks = {"queue_id": (required, string)}


class DeleteReviewQueue(Message):
    queue_id: str
    checks = {"queue_id": (required, string)}


class AddItemsToReviewQueue(Message):
    queue_id: str
    item_type: ItemType
    item_ids: list[str]
    checks = {"queue_id": (required, string)}


class RemoveItemsFromReviewQueue(Message):
    queue_id: str
    item_ids: list[str]
    checks = {"queue_id": (required, string)}


class ListReviewQueueItems(Message):
    queue_id: str
    status: Status
    max_results: Int32
    page_token: str
    checks = {"queue_id": (required, string), "max_results": (intlike, _PAGE)}


class SetReviewQueueItemStatus(Message):
    queue_id: str
    item_id: str
    status: Status
    completed_by: str
    checks = {"queue_id": (required, string), "item_id": (required, string)}


_TEXTS: Final = (array, item_type_string)


class CreateIssue(Message):
    experiment_id: str
    name: str
    description: str
    status: str
    severity: str
    root_causes: list[str]
    source_run_id: str
    created_by: str
    categories: list[str]
    issue_id: str
    last_seen_timestamp: int
    metadata: dict[str, str]
    checks = {
        "name": (required, string),
        "description": (required, string),
        "experiment_id": (required, string),
        "status": (string,),
        "severity": (string,),
        "root_causes": _TEXTS,
        "source_run_id": (string,),
        "created_by": (string,),
        "categories": _TEXTS,
        "issue_id": (string,),
        "last_seen_timestamp": (check_last_seen,),
        "metadata": (check_metadata,),
    }


class UpdateIssue(Message):
    issue_id: str
    name: str
    description: str
    status: str
    severity: str
    categories: list[str]
    last_seen_timestamp: int
    last_updated_by: str
    metadata: dict[str, str]
    delete_metadata_keys: list[str]
    checks = {
        "issue_id": (required, string),
        "name": (string,),
        "description": (string,),
        "status": (string,),
        "severity": (string,),
        "categories": _TEXTS,
        "last_seen_timestamp": (check_last_seen,),
        "last_updated_by": (string,),
        "metadata": (check_metadata,),
        "delete_metadata_keys": _TEXTS,
    }


class GetIssue(Message):
    issue_id: str


class SearchIssues(Message):
    experiment_id: str
    filter_string: str
    max_results: Int32
    page_token: str
    include_trace_count: bool
    name: str
    statuses: list[str]
    severities: list[str]
    categories: list[str]
    order_by: list[str]
    include_total_count: bool
    view: str
    checks = {
        "experiment_id": (string,),
        "filter_string": (string,),
        "max_results": (intlike,),
        "page_token": (string,),
        "include_trace_count": (boolean,),
        "name": (string,),
        "statuses": _TEXTS,
        "severities": _TEXTS,
        "categories": _TEXTS,
        "order_by": _TEXTS,
        "include_total_count": (boolean,),
        "view": (string,),
    }
