"""Creates, changes and lists review queues and their items. A queue holds reviewers, label schemas
(the questions) and items (the traces to review)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from uuid import uuid4

from evaluation import experiment_lookup, newest_first_pages
from evaluation import review_queue_messages as m
from mlcore import errors, ids
from mlcore.db.table import table
from mlcore.entities.evaluation.review_queues import (
    CUSTOM,
    PENDING,
    TRACE,
    USER,
    QueueItem,
    ReviewQueue,
)
from mlcore.entities.experiments import Experiment
from mlcore.http import Request
from mlcore.limits.evaluation.review_queues import (
    completed_by_of,
    item_ids_of,
    members_of_user_queue,
    name_of_custom_queue,
    name_of_user_queue,
    owner_of,
    schema_ids_of,
    user_of,
    users_of,
)
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.evaluation import label_schemas, review_queues
from mlcore.repos.evaluation.entities import EntityNameTaken
from mlcore.repos.traces import traces
from mlcore.repos.users import users
from mlcore.responses.evaluation import review_queues as responses

T = TypeVar("T")

DEFAULT_MAX_RESULTS: Final = 1000
TRACES_PER_READ: Final = 100
"""Traces that are read at once to find the items whose trace exists."""


def create_review_queue(message: m.CreateReviewQueue, request: Request) -> dict[str, Any]:
    if message.queue_type not in (USER, CUSTOM):
        raise errors.InvalidParameterValue(
            "`queue_type` must be one of USER or CUSTOM; got proto enum value 0."
        )
    users, schema_ids = users_of(message.users), schema_ids_of(message.schema_ids)
    if message.queue_type == USER:
        name = name_of_user_queue(message.name)
        users = members_of_user_queue(name, users, schema_ids)
    else:
        name = name_of_custom_queue(message.name)
        _check_no_user(name, request)
    experiment = experiment_lookup.get_unless_deleted(message.experiment_id, request)
    _check_schemas(experiment, message.experiment_id, schema_ids)
    owner = request.username()
    queue = _new_queue(experiment, name, message.queue_type, users, schema_ids, owner)
    try:
        review_queues.create(queue)
    except EntityNameTaken as taken:
        raise _name_taken(name) from taken
    return {"review_queue": responses.review_queue(queue)}


def get_or_create_user_queue(message: m.GetOrCreateUserQueue, request: Request) -> dict[str, Any]:
    name = name_of_user_queue(message.user)
    experiment = experiment_lookup.get_unless_deleted(message.experiment_id, request)

    def attempt() -> ReviewQueue:
        queue = review_queues.find_by_name(experiment, name)
        if queue is not None:
            if queue.queue_type != USER:
                raise errors.ResourceAlreadyExists(
                    f"A non-user queue named '{name}' already exists; cannot get-or-create "
                    f"a user queue with that name."
                )
            return queue
        queue = _new_queue(experiment, name, USER, (name,), (), name)
        try:
            review_queues.create(queue)
        except EntityNameTaken as taken:
            raise WriteConflict from taken
        return queue

    return {"review_queue": responses.review_queue(retry_on_conflict("review queue", attempt))}


def get_review_queue(message: m.GetReviewQueue, request: Request) -> dict[str, Any]:
    return {"review_queue": responses.review_queue(get(message.queue_id, request))}


def get_by_name(message: m.GetReviewQueueByName, request: Request) -> dict[str, Any]:
    experiment = experiment_lookup.get_unless_deleted(message.experiment_id, request)
    queue = review_queues.find_by_name(experiment, message.name)
    if queue is None:
        raise errors.ResourceDoesNotExist(
            f"Review queue with name '{message.name}' not found for experiment "
            f"'{message.experiment_id}'."
        )
    return {"review_queue": responses.review_queue(queue)}


def list_review_queues(message: m.ListReviewQueues, request: Request) -> dict[str, Any]:
    """Returns a page of an experiment's review queues, newest first. The request may restrict them
    to those of a user, and to those that contain a trace."""
    limit = message.max_results if message.has("max_results") else DEFAULT_MAX_RESULTS
    experiment = experiment_lookup.get_unless_deleted(message.experiment_id, request)
    experiment_id = experiment.experiment_id
    after = newest_first_pages.parse_token(message.page_token, experiment_id)
    queues = review_queues.of_experiment(experiment)
    if message.has("user"):
        queues = [queue for queue in queues if user_of(message.user) in queue.users]
    if message.has("item_id"):
        is_there = message.item_id and _existing(request, [message.item_id])
        queues = review_queues.with_item(queues, message.item_id) if is_there else []
    rows = newest_first_pages.rows_after(
        ((-queue.created_time, queue.queue_id, queue) for queue in queues), after
    )
    return newest_first_pages.page(
        "review_queues", rows, limit, experiment_id, responses.review_queue
    )


def update_review_queue(message: m.UpdateReviewQueue, request: Request) -> dict[str, Any]:
    """Changes a review queue. A user's own queue cannot be changed, nor can the label schemas of a
    queue that has items; items whose trace was deleted do not count."""

    def attempt() -> ReviewQueue:
        queue = get(message.queue_id, request)
        if queue.queue_type == USER:
            raise errors.InvalidParameterValue(
                "A user queue's name, assigned user, schemas, and owner are fixed "
                "and cannot be updated."
            )
        changes = _changes(message, queue, request)
        if "name" in changes:
            _check_no_user(changes["name"], request)
        if not changes:
            return queue
        wanted = queue._replace(last_update_time=ids.now_ms(), **changes)
        try:
            review_queues.replace(queue, wanted)
        except EntityNameTaken as taken:
            raise _name_taken(wanted.name) from taken
        return wanted

    return {"review_queue": responses.review_queue(retry_on_conflict("review queue", attempt))}


def delete_review_queue(message: m.DeleteReviewQueue, request: Request) -> dict[str, Any]:
    """Deletes a review queue. A missing queue is not an error."""

    def attempt() -> None:
        queue = find(message.queue_id, request)
        if queue is not None:
            review_queues.delete(queue)

    retry_on_conflict("review queue", attempt)
    return {}


def add_items(message: m.AddItemsToReviewQueue, request: Request) -> dict[str, Any]:
    """Adds traces to a review queue. Traces that are already in it keep their status."""
    item_ids = item_ids_of(message.item_ids)
    queue = get(message.queue_id, request)
    stored_traces = traces.find_many(item_ids, request.workspace)
    missing = [
        item_id
        for item_id, stored in zip(item_ids, stored_traces, strict=True)
        if stored is None or stored.experiment.experiment_id != queue.experiment_id
    ]
    if missing:
        raise errors.ResourceDoesNotExist(
            f"Cannot attach trace(s) {missing} to review queue '{message.queue_id}': "
            f"they do not exist in experiment '{queue.experiment_id}'."
        )
    now = ids.now_ms()
    new = [
        QueueItem(queue.queue_id, item_id, TRACE, PENDING, None, None, now, now)
        for item_id in item_ids
    ]
    try:
        review_queues.add(queue, new)
    except WriteConflict:
        raise _missing(message.queue_id) from None
    return {
        "items": [
            responses.review_queue_item(item) for item in review_queues.find_items(queue, item_ids)
        ]
    }


def remove_items(message: m.RemoveItemsFromReviewQueue, request: Request) -> dict[str, Any]:
    """Removes items from a review queue. Items that are not in it are ignored."""
    item_ids = item_ids_of(message.item_ids)
    review_queues.remove(get(message.queue_id, request), item_ids)
    return {}


def list_items(message: m.ListReviewQueueItems, request: Request) -> dict[str, Any]:
    """Returns a page of a review queue's items, newest first. Items whose trace was deleted are
    left out."""
    limit = message.max_results if message.has("max_results") else DEFAULT_MAX_RESULTS
    queue = get(message.queue_id, request)
    after = newest_first_pages.parse_token(message.page_token, queue.queue_id)
    following = newest_first_pages.rows_after(
        (
            (-item.created_time, item.item_id, item)
            for item in review_queues.items(queue)
            if message.status in (None, "REVIEW_STATUS_UNSPECIFIED", item.status)
        ),
        after,
    )
    rows: list[newest_first_pages.Row[QueueItem]] = []
    for chunk in _chunks(following):
        existing = _existing(request, [item_id for _, item_id, _ in chunk])
        rows += [row for row in chunk if row[1] in existing]
        if len(rows) > limit:
            break
    return newest_first_pages.page(
        "items", rows, limit, queue.queue_id, responses.review_queue_item
    )


def set_item_status(message: m.SetReviewQueueItemStatus, request: Request) -> dict[str, Any]:
    """Sets the status of a review queue's item. Where authentication is on, ``completed_by`` is the
    caller (None for PENDING), even if the request names another user. Setting the same status again
    changes nothing. Raises ResourceDoesNotExist if the item is not in the queue, or its trace was
    deleted."""
    status = message.status
    if status is None or status == "REVIEW_STATUS_UNSPECIFIED":
        raise errors.InvalidParameterValue(
            "`status` must be one of PENDING, COMPLETE, or DECLINED; got proto enum value 0."
        )
    if request.access is not None:
        given = None if status == PENDING else request.access.username
    else:
        given = message.completed_by if message.has("completed_by") else None
    completed_by = completed_by_of(status, given)
    queue = get(message.queue_id, request)
    item_id = message.item_id.strip()
    item_ids = [item_id] if item_id else []

    def attempt() -> QueueItem:
        items: list[QueueItem]
        existing: set[str]
        reads: list[Callable[[], Any]] = [
            partial(review_queues.find_items, queue, item_ids),
            partial(_existing, request, item_ids),
        ]
        items, existing = table.parallel(reads)
        if not items or item_id not in existing:
            raise errors.ResourceDoesNotExist(
                f"Item '{item_id}' is not attached to review queue '{message.queue_id}'."
            )
        (item,) = items
        if item.status == status:
            return item
        now = ids.now_ms()
        wanted = item._replace(
            status=status,
            completed_by=completed_by,
            completed_time=None if status == PENDING else now,
            last_update_time=now,
        )
        review_queues.replace_item(queue, wanted)
        return wanted

    return {"item": responses.review_queue_item(retry_on_conflict("review queue", attempt))}


def find(queue_id: str, request: Request) -> ReviewQueue | None:
    return review_queues.find(queue_id, request.workspace)


def get(queue_id: str, request: Request) -> ReviewQueue:
    """Returns the review queue with this id. Raises ResourceDoesNotExist if the workspace has
    none."""
    queue = find(queue_id, request)
    if queue is None:
        raise _missing(queue_id)
    return queue


def _new_queue(
    experiment: Experiment,
    name: str,
    queue_type: str,
    users: tuple[str, ...],
    schema_ids: tuple[str, ...],
    owner: str | None,
) -> ReviewQueue:
    now = ids.now_ms()
    return ReviewQueue(
        f"rq-{uuid4().hex}",
        experiment.experiment_id,
        name,
        queue_type,
        users,
        schema_ids,
        owner,
        now,
        now,
    )


def _changes(message: m.UpdateReviewQueue, queue: ReviewQueue, request: Request) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if message.has("new_owner"):
        changes["created_by"] = owner_of(message.new_owner)
    if message.has("name"):
        changes["name"] = name_of_custom_queue(message.name)
    if message.update_users:
        changes["users"] = users_of(message.users)
    if message.update_schema_ids:
        if _has_traces(queue, request):
            raise errors.InvalidParameterValue(
                "A review queue's questions are locked once items are assigned to it. "
                "Remove the items before changing its questions."
            )
        schema_ids = schema_ids_of(message.schema_ids)
        _check_schemas(queue, queue.experiment_id, schema_ids)
        changes["schema_ids"] = schema_ids
    return changes


def _has_traces(queue: ReviewQueue, request: Request) -> bool:
    """Whether a review queue has an item whose trace still exists: the deletion of a trace leaves
    its items, which no request shows."""
    items = review_queues.items(queue)
    return any(_existing(request, [item.item_id for item in chunk]) for chunk in _chunks(items))


def _existing(request: Request, trace_ids: Sequence[str]) -> set[str]:
    """Returns those of the ids whose trace exists in the workspace."""
    stored_traces = traces.find_many(trace_ids, request.workspace)
    return {stored.trace_id for stored in stored_traces if stored is not None}


def _chunks(entries: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(entries), TRACES_PER_READ):
        yield entries[start : start + TRACES_PER_READ]


def _check_no_user(name: str, request: Request) -> None:
    """Raises InvalidParameterValue if a username would be the name of a custom queue where
    authentication is on, because it would look like that user's own queue."""
    if request.access is None:
        return
    for profile in users.find_all():
        if user_of(profile.user.username) == user_of(name):
            raise errors.InvalidParameterValue(
                f"'{profile.user.username}' is a registered user. A custom review queue cannot "
                "use a username as its name; assign that user to a queue instead."
            )


def _check_schemas(
    owner: Experiment | ReviewQueue, field: str, schema_ids: tuple[str, ...]
) -> None:
    if not schema_ids:
        return
    known = {schema.schema_id for schema in label_schemas.of_experiment(owner)}
    missing = [schema_id for schema_id in schema_ids if schema_id not in known]
    if missing:
        raise errors.InvalidParameterValue(
            f"Label schema id(s) {missing} not found for experiment '{field}'."
        )


def _missing(queue_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Review queue with id '{queue_id}' not found.")


def _name_taken(name: str) -> errors.ResourceAlreadyExists:
    return errors.ResourceAlreadyExists(
        f"Review queue with name '{name}' already exists (names are case-insensitive)."
    )
