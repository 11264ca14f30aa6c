"""Items that map ids of scorers, label schemas, review queues and issues to their experiments."""

from __future__ import annotations

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.table import Delete, Put, table
from mlcore.ids import now_ms
from mlcore.models.evaluation import EntityReference


def creation(entity_id: str, experiment_id: str, *, must_be_new: bool = False) -> Put:
    """Returns the put of the item that maps the id of a scorer, label schema, review queue or issue
    to its experiment, for the transaction that creates the entity.

    Args:
        must_be_new: whether the transaction must fail if the id exists already.
    """
    key = keys.entity_ref(entity_id)
    item = EntityReference(
        PK=key.pk,
        SK=key.sk,
        entity_id=entity_id,
        experiment_id=experiment_id,
        updated_at=now_ms(),
    )
    absent = ConditionExpression()
    absent.require_absent(EntityReference.PK)
    return Put(item.serialize(), absent if must_be_new else None)


def deletion(entity_id: str) -> Delete:
    """Returns the deletion of the item that maps the id of a scorer, label schema, review queue or
    issue to its experiment, for the transaction that deletes the entity."""
    return Delete(keys.entity_ref(entity_id))


def experiment_of(entity_id: str) -> str | None:
    """Returns the id of the experiment to which a scorer, label schema, review queue or issue
    belongs; None for an unknown id. One consistent GetItem."""
    item = table.get(keys.entity_ref(entity_id))
    return None if item is None else EntityReference.of(item).experiment_id
