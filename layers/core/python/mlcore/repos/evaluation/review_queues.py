"""Review queues: one item each in their experiment's partition, one that locks the name, and one
for each trace in the queue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.entities.evaluation.review_queues import QueueItem, ReviewQueue
from mlcore.entities.experiments import Experiment
from mlcore.ids import now_ms
from mlcore.models.base import KEY
from mlcore.models.evaluation import ReviewQueue as QueueModel
from mlcore.models.evaluation import ReviewQueueItem, ReviewQueueName
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.evaluation import entities
from mlcore.repos.item_deletion import delete_items


def create(queue: ReviewQueue) -> None:
    """Writes a new review queue, whose id the caller has generated. Raises EntityNameTaken if
    another queue of the experiment has the name."""
    entities.create(_KIND, queue, _NAMES)


def find(queue_id: str, workspace: str) -> ReviewQueue | None:
    """Returns a review queue; None if it does not exist or if it is in another workspace. Two round
    trips; one for an unknown id."""
    return entities.find(_KIND, queue_id, workspace)


def find_by_name(experiment: Experiment, name: str) -> ReviewQueue | None:
    """Returns the review queue with this name in an experiment, ignoring case; None if there is
    none. At most two consistent GetItem."""
    return entities.find_by_name(_KIND, _NAMES, experiment, name)


def of_experiment(experiment: Experiment) -> list[ReviewQueue]:
    """Returns the review queues of an experiment; one consistent Query per MB."""
    return entities.of_experiment(_KIND, experiment.experiment_id)


def replace(before: ReviewQueue, after: ReviewQueue) -> None:
    """Writes a changed review queue. Raises WriteConflict if it was written or deleted since
    ``before`` was read, EntityNameTaken if another queue of the experiment has the new name."""
    entities.rename(_KIND, _NAMES, before, after)


def delete(queue: ReviewQueue) -> None:
    """Deletes a review queue, after the traces in it. Idempotent. Raises WriteConflict if the queue
    was written since it was read; the traces are then removed from it already."""
    pk = keys.experiment(queue.experiment_id).pk
    prefix = keys.review_queue_item_prefix(queue.queue_id)
    delete_items(table.query_all(pk, prefix=prefix, attributes=KEY))
    entities.delete(_KIND, _NAMES, queue)


def add(queue: ReviewQueue, items: Sequence[QueueItem]) -> None:
    """Adds to a review queue those items (traces) that are not in it yet. Increments the queue's
    version, so that a concurrent change of the queue conflicts. Raises WriteConflict if the queue
    was deleted."""
    touched = Update()
    touched.require_exists(QueueModel.PK)
    touched.add(QueueModel.version, 1)
    try:
        table.update(keys.review_queue(queue.experiment_id, queue.queue_id), touched)
    except ConditionFailed as failed:
        raise WriteConflict from failed
    table.parallel([partial(_add, queue.experiment_id, item) for item in items])


def items(queue: ReviewQueue) -> list[QueueItem]:
    """Returns the items (traces) of a review queue; one consistent Query per MB."""
    pk = keys.experiment(queue.experiment_id).pk
    prefix = keys.review_queue_item_prefix(queue.queue_id)
    return [_queue_item(item) for item in table.query_all(pk, prefix=prefix)]


def find_items(queue: ReviewQueue, item_ids: Sequence[str]) -> list[QueueItem]:
    """Returns a review queue's items (traces) with the given ids, in the order of the ids; missing
    ones are left out."""
    places = [_item_key(queue.experiment_id, queue.queue_id, item_id) for item_id in item_ids]
    return [_queue_item(item) for item in table.batch_get(places) if item is not None]


def with_item(queues: Sequence[ReviewQueue], item_id: str) -> list[ReviewQueue]:
    """Returns those of the given review queues that contain the item (trace) ``item_id``."""
    places = [_item_key(queue.experiment_id, queue.queue_id, item_id) for queue in queues]
    items = table.batch_get(places)
    return [queue for queue, item in zip(queues, items, strict=True) if item is not None]


def remove(queue: ReviewQueue, item_ids: Iterable[str]) -> None:
    """Removes items (traces) from a review queue. Idempotent."""
    places = [_item_key(queue.experiment_id, queue.queue_id, item_id) for item_id in item_ids]
    table.batch_write(deletes=places)


def replace_item(queue: ReviewQueue, item: QueueItem) -> None:
    """Writes a changed item (trace) of a review queue. Raises WriteConflict if the item was written
    since it was read."""
    unchanged = ConditionExpression()
    unchanged.require_equal(ReviewQueueItem.version, item.version)
    try:
        table.put(_raw_item(queue.experiment_id, item), unchanged)
    except ConditionFailed as failed:
        raise WriteConflict from failed


def _item_key(experiment_id: str, queue_id: str, item_id: str) -> keys.Key:
    return keys.review_queue_item(experiment_id, queue_id, item_id)


def _add(experiment_id: str, item: QueueItem) -> None:
    absent = ConditionExpression()
    absent.require_absent(ReviewQueueItem.PK)
    try:
        table.put(_raw_item(experiment_id, item), absent)
    except ConditionFailed:
        return


def _item(queue: ReviewQueue) -> QueueModel:
    key = keys.review_queue(queue.experiment_id, queue.queue_id)
    return QueueModel(
        PK=key.pk,
        SK=key.sk,
        entity_id=queue.queue_id,
        experiment_id=queue.experiment_id,
        name=queue.name,
        queue_type=queue.queue_type,
        users=json.dumps(queue.users),
        schema_ids=json.dumps(queue.schema_ids),
        created_by=queue.created_by,
        created_time=queue.created_time,
        last_update_time=queue.last_update_time,
        version=queue.version + 1,
        updated_at=now_ms(),
    )


def _raw_item(experiment_id: str, item: QueueItem) -> Raw:
    key = _item_key(experiment_id, item.queue_id, item.item_id)
    model = ReviewQueueItem(
        PK=key.pk,
        SK=key.sk,
        queue_id=item.queue_id,
        item_id=item.item_id,
        item_type=item.item_type,
        status=item.status,
        completed_by=item.completed_by,
        completed_time=item.completed_time,
        created_time=item.created_time,
        last_update_time=item.last_update_time,
        version=item.version + 1,
        updated_at=now_ms(),
    )
    return model.serialize()


def _queue(raw: Raw) -> ReviewQueue:
    item = QueueModel.of(raw)
    return ReviewQueue(
        queue_id=item.entity_id,
        experiment_id=item.experiment_id,
        name=item.name,
        queue_type=item.queue_type,
        users=tuple(json.loads(item.users)),
        schema_ids=tuple(json.loads(item.schema_ids)),
        created_by=item.created_by,
        created_time=item.created_time,
        last_update_time=item.last_update_time,
        version=item.version,
    )


def _queue_item(raw: Raw) -> QueueItem:
    item = ReviewQueueItem.of(raw)
    return QueueItem(
        queue_id=item.queue_id,
        item_id=item.item_id,
        item_type=item.item_type,
        status=item.status,
        completed_by=item.completed_by,
        completed_time=item.completed_time,
        created_time=item.created_time,
        last_update_time=item.last_update_time,
        version=item.version,
    )


_KIND: entities.StoredKind[ReviewQueue] = entities.StoredKind(
    entity_id=lambda queue: queue.queue_id,
    key_of=keys.review_queue,
    prefix=keys.review_queue_prefix,
    item=_item,
    entity=_queue,
    version=QueueModel.version,
)
_NAMES: entities.NameLocks[ReviewQueue] = entities.NameLocks(
    keys.review_queue_name, ReviewQueueName, ReviewQueueName.queue_id
)
