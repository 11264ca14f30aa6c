"""Where label schemas, review queues and issues are: items that lead from an id to its
experiment."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.table import Delete, Put, table
from mlcore.ids import now_ms
from mlcore.models.evaluation import EntityReference


def put(entity_id: str, experiment_id: str) -> Put:
    """What belongs into the transaction that makes the entity."""
    place = keys.entity_ref(entity_id)
    item = EntityReference(
        PK=place.pk,
        SK=place.sk,
        entity_id=entity_id,
        experiment_id=experiment_id,
        updated_at=now_ms(),
    )
    return Put(item.serialize())


def gone(entity_id: str) -> Delete:
    """What belongs into the transaction that deletes the entity."""
    return Delete(keys.entity_ref(entity_id))


def experiment_of(entity_id: str) -> str | None:
    """One consistent GetItem."""
    item = table.get(keys.entity_ref(entity_id))
    return None if item is None else EntityReference.of(item).experiment_id
