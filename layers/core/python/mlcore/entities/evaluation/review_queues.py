"""A review queue and its items, the traces in it."""

from __future__ import annotations

from typing import Final, NamedTuple

USER: Final = "USER"
CUSTOM: Final = "CUSTOM"
PENDING: Final = "PENDING"
TRACE: Final = "TRACE"


class ReviewQueue(NamedTuple):
    queue_id: str
    experiment_id: str
    name: str
    queue_type: str
    users: tuple[str, ...]
    schema_ids: tuple[str, ...]
    created_by: str | None
    created_time: int
    last_update_time: int
    version: int = 0
    """Version of the stored item."""


class QueueItem(NamedTuple):
    queue_id: str
    item_id: str
    item_type: str
    status: str
    completed_by: str | None
    completed_time: int | None
    created_time: int
    last_update_time: int
    version: int = 0
    """Version of the stored item."""
