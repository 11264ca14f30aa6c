"""Transfers review queues with their items. A queue keeps its id unless the target's experiment has
a queue of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.entities.evaluation.review_queues import QueueItem, ReviewQueue
from mlcore.entities.experiments import Experiment
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.evaluation import review_queues
from mlcore.repos.evaluation.entities import EntityNameTaken
from mlcore.repos.experiments import experiments
from operate.transfer.mlflow_client import Json, Server
from operate.transfer.source_reader import API_3, SourceReader, empty_if_unsupported
from operate.transfer.transfer_item import Content, TransferItem

_PAGE: Final = 1000
_OWN: Final = ("name", "queue_type", "created_by", "created_time", "last_update_time")


def listed(
    source: SourceReader, experiment_id: str, target: Experiment, schema_ids: Mapping[str, str]
) -> list[TransferItem]:
    """Returns, for an import, one TransferItem per review queue of an active experiment; an empty
    list if the server from which is imported does not support review queues.

    Args:
        experiment_id: the experiment's id on the server.
        target: the corresponding experiment of the table.
        schema_ids: the table's id of each label schema, by the server's id.
    """
    queues = empty_if_unsupported(
        source.server.pages(
            "GET",
            f"{API_3}/review-queues/list",
            "review_queues",
            experiment_id=experiment_id,
            max_results=_PAGE,
        )
    )
    return [_item(source.server, queue, target, schema_ids) for queue in queues]


def _item(
    server: Server, fields: Json, target: Experiment, schema_ids: Mapping[str, str]
) -> TransferItem:
    def find() -> ReviewQueue | None:
        existing = review_queues.find(fields["queue_id"], target.workspace)
        return existing or review_queues.find_by_name(target, fields["name"])

    before = find()
    queue_id = fields["queue_id"] if before is None else before.queue_id
    queue = _queue(fields, queue_id, target, schema_ids)

    def want() -> Content:
        attached = server.pages(
            "GET",
            f"{API_3}/review-queues/items/list",
            "items",
            queue_id=fields["queue_id"],
            max_results=_PAGE,
        )
        return _content(queue, [_queue_item(queue_item, queue_id) for queue_item in attached])

    def have() -> Content | None:
        existing = find()
        return None if existing is None else _content(existing, review_queues.items(existing))

    def attempt() -> ReviewQueue:
        existing = find()
        try:
            if existing is None:
                review_queues.create(queue)
            elif _own(existing) != _own(queue):
                review_queues.replace(existing, queue._replace(version=existing.version))
        except EntityNameTaken as taken:
            raise errors.ResourceAlreadyExists(
                f"The target has another review queue {queue.name!r}."
            ) from taken
        return queue

    def write(want: Content, existing: Content | None) -> None:
        experiments.get(target.experiment_id, target.workspace)
        retry_on_conflict("review queue", attempt)
        _attach(queue, want["items"], {} if existing is None else existing["items"])

    return TransferItem(
        "review queue",
        f"{queue.name!r} of experiment {target.name!r}",
        want,
        have,
        write,
        identity=queue_id,
    )


def _attach(queue: ReviewQueue, want: Json, existing: Json) -> None:
    new = {item_id: wanted_item for item_id, wanted_item in want.items() if item_id not in existing}
    if new:
        items = [
            QueueItem(queue.queue_id, item_id, **wanted_item)
            for item_id, wanted_item in new.items()
        ]
        retry_on_conflict("review queue", lambda: review_queues.add(queue, items))
    changed = {
        item_id: wanted_item
        for item_id, wanted_item in want.items()
        if item_id in existing and existing[item_id] != wanted_item
    }

    def attempt() -> None:
        for current in review_queues.find_items(queue, list(changed)):
            wanted = current._replace(**changed[current.item_id])
            if wanted != current:
                review_queues.replace_item(queue, wanted)

    retry_on_conflict("review queue", attempt)


def _queue(
    fields: Json, queue_id: str, target: Experiment, schema_ids: Mapping[str, str]
) -> ReviewQueue:
    return ReviewQueue(
        queue_id=queue_id,
        experiment_id=target.experiment_id,
        name=fields["name"],
        queue_type=fields["queue_type"],
        users=tuple(sorted(fields.get("users", ()))),
        schema_ids=tuple(
            sorted(
                schema_ids.get(schema_id, schema_id) for schema_id in fields.get("schema_ids", ())
            )
        ),
        created_by=fields.get("created_by"),
        created_time=int(fields["creation_time_ms"]),
        last_update_time=int(fields["last_update_time_ms"]),
    )


def _queue_item(fields: Json, queue_id: str) -> QueueItem:
    completed = fields.get("completed_time_ms")
    return QueueItem(
        queue_id=queue_id,
        item_id=fields["item_id"],
        item_type=fields["item_type"],
        status=fields["status"],
        completed_by=fields.get("completed_by"),
        completed_time=None if completed is None else int(completed),
        created_time=int(fields["creation_time_ms"]),
        last_update_time=int(fields["last_update_time_ms"]),
    )


def _own(queue: ReviewQueue) -> dict[str, Any]:
    return {
        **{name: getattr(queue, name) for name in _OWN},
        "users": sorted(queue.users),
        "schema_ids": sorted(queue.schema_ids),
    }


def _content(queue: ReviewQueue, items: list[QueueItem]) -> Content:
    return {**_own(queue), "items": {item.item_id: _plain(item) for item in items}}


def _plain(item: QueueItem) -> dict[str, Any]:
    fields = item._asdict()
    del fields["queue_id"], fields["item_id"], fields["version"]
    return fields
