"""Review queues with what is in them, from the server to the table. They keep their ids, unless the
table's experiment has one of the same name, as of the same user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.entities.evaluation.review_queues import QueueItem, ReviewQueue
from mlcore.entities.experiments import Experiment
from mlcore.repos.evaluation import review_queues
from mlcore.repos.evaluation.entities import NameTaken
from mlcore.repos.experiments import experiments
from mlcore.settle import settle
from operate.transfer.item import Content, Item
from operate.transfer.rest import Json, Server
from operate.transfer.source import API_3, Source, known

_PAGE: Final = 1000
_OWN: Final = ("name", "queue_type", "created_by", "created_time", "last_update_time")


def listed(
    source: Source, experiment_id: str, target: Experiment, schema_ids: Mapping[str, str]
) -> list[Item]:
    """Those of an active experiment; none of a server that has no review queues.

    Args:
        experiment_id: the server's.
        target: the experiment of the table that stands for it.
        schema_ids: the table's id of each label schema, by the server's.
    """
    told = known(
        source.server.pages(
            "GET",
            f"{API_3}/review-queues/list",
            "review_queues",
            experiment_id=experiment_id,
            max_results=_PAGE,
        )
    )
    return [_item(source.server, one, target, schema_ids) for one in told]


def _item(server: Server, told: Json, target: Experiment, schema_ids: Mapping[str, str]) -> Item:
    def find() -> ReviewQueue | None:
        found = review_queues.find(told["queue_id"], target.workspace)
        return found or review_queues.find_by_name(target, told["name"])

    before = find()
    queue_id = told["queue_id"] if before is None else before.queue_id
    queue = _queue(told, queue_id, target, schema_ids)

    def want() -> Content:
        attached = server.pages(
            "GET",
            f"{API_3}/review-queues/items/list",
            "items",
            queue_id=told["queue_id"],
            max_results=_PAGE,
        )
        return _content(queue, [_queue_item(one, queue_id) for one in attached])

    def have() -> Content | None:
        found = find()
        return None if found is None else _content(found, review_queues.items(found))

    def attempt() -> ReviewQueue:
        found = find()
        try:
            if found is None:
                review_queues.create(queue)
            elif _own(found) != _own(queue):
                review_queues.replace(found, queue._replace(version=found.version))
        except NameTaken as taken:
            raise errors.ResourceAlreadyExists(
                f"The target has another review queue {queue.name!r}."
            ) from taken
        return queue

    def write(want: Content, found: Content | None) -> None:
        experiments.get(target.experiment_id, target.workspace)
        settle("review queue", attempt)
        _attach(queue, want["items"], {} if found is None else found["items"])

    return Item(
        "review queue",
        f"{queue.name!r} of experiment {target.name!r}",
        want,
        have,
        write,
        identity=queue_id,
    )


def _attach(queue: ReviewQueue, want: Json, found: Json) -> None:
    new = {item_id: one for item_id, one in want.items() if item_id not in found}
    if new:
        items = [QueueItem(queue.queue_id, item_id, **one) for item_id, one in new.items()]
        settle("review queue", lambda: review_queues.add(queue, items))
    changed = {
        item_id: one for item_id, one in want.items() if item_id in found and found[item_id] != one
    }

    def attempt() -> None:
        for current in review_queues.find_items(queue, list(changed)):
            wanted = current._replace(**changed[current.item_id])
            if wanted != current:
                review_queues.replace_item(queue, wanted)

    settle("review queue", attempt)


def _queue(
    told: Json, queue_id: str, target: Experiment, schema_ids: Mapping[str, str]
) -> ReviewQueue:
    return ReviewQueue(
        queue_id=queue_id,
        experiment_id=target.experiment_id,
        name=told["name"],
        queue_type=told["queue_type"],
        users=tuple(sorted(told.get("users", ()))),
        schema_ids=tuple(sorted(schema_ids.get(one, one) for one in told.get("schema_ids", ()))),
        created_by=told.get("created_by"),
        created_time=int(told["creation_time_ms"]),
        last_update_time=int(told["last_update_time_ms"]),
    )


def _queue_item(told: Json, queue_id: str) -> QueueItem:
    completed = told.get("completed_time_ms")
    return QueueItem(
        queue_id=queue_id,
        item_id=told["item_id"],
        item_type=told["item_type"],
        status=told["status"],
        completed_by=told.get("completed_by"),
        completed_time=None if completed is None else int(completed),
        created_time=int(told["creation_time_ms"]),
        last_update_time=int(told["last_update_time_ms"]),
    )


def _own(queue: ReviewQueue) -> dict[str, Any]:
    return {
        **{name: getattr(queue, name) for name in _OWN},
        "users": sorted(queue.users),
        "schema_ids": sorted(queue.schema_ids),
    }


def _content(queue: ReviewQueue, items: list[QueueItem]) -> Content:
    return {**_own(queue), "items": {one.item_id: _plain(one) for one in items}}


def _plain(item: QueueItem) -> dict[str, Any]:
    fields = item._asdict()
    del fields["queue_id"], fields["item_id"], fields["version"]
    return fields
