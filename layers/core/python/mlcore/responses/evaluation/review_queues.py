"""Review queues in the shape of MLflow's JSON."""

from __future__ import annotations

from typing import Any

from mlcore.entities.evaluation.review_queues import (
    QueueItem,
    ReviewQueue,
)


def review_queue(queue: ReviewQueue) -> dict[str, Any]:
    """Returns the JSON of MLflow's message ``mlflow.review_queues.ReviewQueue``."""
    fields = {
        "queue_id": queue.queue_id,
        "experiment_id": queue.experiment_id,
        "name": queue.name,
        "queue_type": queue.queue_type,
        "created_by": queue.created_by,
        "creation_time_ms": queue.created_time,
        "last_update_time_ms": queue.last_update_time,
        "users": sorted(queue.users) or None,
        "schema_ids": sorted(queue.schema_ids) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def review_queue_item(item: QueueItem) -> dict[str, Any]:
    """Returns the JSON of MLflow's message ``mlflow.review_queues.ReviewQueueItem``."""
    fields = {
        "queue_id": item.queue_id,
        "item_type": item.item_type,
        "item_id": item.item_id,
        "status": item.status,
        "completed_by": item.completed_by,
        "completed_time_ms": item.completed_time,
        "creation_time_ms": item.created_time,
        "last_update_time_ms": item.last_update_time,
    }
    return {name: value for name, value in fields.items() if value is not None}
