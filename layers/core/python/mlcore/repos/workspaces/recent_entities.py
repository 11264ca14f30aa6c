"""The experiments that were created, and the registered models that were created or renamed, in a
workspace in the last days.

Other lists of them read global indexes, which may lag. The deletion of a workspace must miss none,
so each such write also writes an item that is read with strong consistency. The item
expires when the indexes certainly have the entity. The default workspace, which cannot be deleted,
has no such items.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from mlcore.db import keys
from mlcore.db.table import Put, table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.ids import now_ms
from mlcore.models.base import KEY
from mlcore.models.workspaces import RecentEntity
from mlcore.repos import item_deletion

KEPT_SECONDS: Final = 2 * 86_400

_EXPERIMENT: Final = keys.EXPERIMENT.name
_MODEL: Final = keys.REGISTERED_MODEL.name


def experiment(experiment_id: str, workspace: str) -> list[Put]:
    """Returns the put, for the transaction that creates an experiment, by which the deletion of its
    workspace finds it at once; an empty list in the default workspace."""
    return _put(workspace, _EXPERIMENT, experiment_id, None)


def model(incarnation: str, home: str, workspace: str) -> list[Put]:
    """Returns the put, for the transaction that creates or renames a registered model, by which the
    deletion of its workspace finds it at once; an empty list in the default workspace.

    Args:
        incarnation: the id of the model among successive models of its name.
        home: the partition of the model's versions.
    """
    return _put(workspace, _MODEL, incarnation, home)


def _put(workspace: str, entity_type: str, entity: str, home: str | None) -> list[Put]:
    if workspace == DEFAULT_WORKSPACE:
        return []
    key = keys.recent_entity(workspace, entity_type, entity)
    item = RecentEntity(
        PK=key.pk,
        SK=key.sk,
        entity=entity,
        home=home,
        updated_at=now_ms(),
        ttl=int(time.time()) + KEPT_SECONDS,
    )
    return [Put(item.serialize())]


def experiment_ids(workspace: str) -> list[str]:
    """Returns the ids of the experiments that were created in a workspace in the last days. Some
    may have been deleted since. One consistent Query per MB."""
    return [item.entity for item in _of_type(workspace, _EXPERIMENT)]


def model_homes(workspace: str) -> list[str]:
    """Returns the homes (partitions of versions) of the registered models that were created or
    renamed in a workspace in the last days. Some may have been deleted since. One consistent Query
    per MB."""
    return [item.home for item in _of_type(workspace, _MODEL) if item.home is not None]


def _of_type(workspace: str, entity_type: str) -> Iterator[RecentEntity]:
    prefix = keys.recent_entity_prefix(entity_type)
    return map(RecentEntity.of, table.query_all(keys.workspace(workspace).pk, prefix=prefix))


def delete(workspace: str) -> None:
    """Deletes the items of a deleted workspace. Idempotent."""
    pk = keys.workspace(workspace).pk
    item_deletion.delete_items(
        table.query_all(pk, prefix=keys.recent_entity_prefix(), attributes=KEY)
    )
