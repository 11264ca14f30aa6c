"""Request messages for review queues. Fields are in the order of MLflow's protobuf
definitions."""

from __future__ import annotations

from typing import Annotated

from evaluation.label_schema_messages import PAGE_SIZE
from mlcore.wire import Int32, Message, enum, intlike, required, string

QueueType = Annotated[str | None, enum(REVIEW_QUEUE_TYPE_UNSPECIFIED=0, USER=1, CUSTOM=2)]
ItemType = Annotated[str | None, enum(REVIEW_ITEM_TYPE_UNSPECIFIED=0, TRACE=1)]
Status = Annotated[str | None, enum(REVIEW_STATUS_UNSPECIFIED=0, PENDING=1, COMPLETE=2, DECLINED=3)]


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
    checks = {"experiment_id": (required, string), "max_results": (intlike, PAGE_SIZE)}


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
    checks = {"queue_id": (required, string), "max_results": (intlike, PAGE_SIZE)}


class SetReviewQueueItemStatus(Message):
    queue_id: str
    item_id: str
    status: Status
    completed_by: str
    checks = {"queue_id": (required, string), "item_id": (required, string)}
