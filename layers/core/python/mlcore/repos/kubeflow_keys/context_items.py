"""Deletes the items that belong to a Kubeflow context (an entity with a Kubeflow number, such as a
model, version or run) together with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, key_of_item, table
from mlcore.kubeflow.kinds import ARTIFACT_KINDS
from mlcore.models.base import Item
from mlcore.models.kubeflow import Artifact, ContextChild, ContextRef, ExternalId
from mlcore.models.registry import ModelVersion

_DELETED_TOGETHER: Final = 1_000


def delete(deletions: Iterable[Delete]) -> None:
    """Deletes items, those without a condition in batches. An item whose condition does not hold
    stays."""
    remaining = iter(deletions)
    while chunk := list(islice(remaining, _DELETED_TOGETHER)):
        table.parallel([partial(_delete, each) for each in chunk if each.condition is not None])
        table.batch_write(deletes=[each.key for each in chunk if each.condition is None])


def _delete(deletion: Delete) -> None:
    with contextlib.suppress(ConditionFailed):
        table.delete(deletion.key, deletion.condition)


class NumberedEntity(NamedTuple):
    """An entity of MLflow's that has a Kubeflow number and is deleted for good."""

    number: int
    name: str | None
    """Its name among the children of its parent; None for an entity without a parent."""
    external_id: str | None


def delete_entities(entities: Sequence[NumberedEntity]) -> set[int]:
    """Deletes all items that belong to entities in Kubeflow's registry, and returns the numbers of
    their parents. Idempotent. One BatchGetItem for a hundred entities; for each that has such items
    a Query, in parallel, and their deletions."""
    raws = table.batch_get([keys.context_ref(entity.number) for entity in entities])
    references = [None if raw is None else ContextRef.of(raw) for raw in raws]
    groups = table.parallel(
        [
            partial(_of_entity, entity, reference)
            for entity, reference in zip(entities, references, strict=True)
            if reference is not None
        ]
    )
    delete(deletion for group in groups for deletion in group)
    parents = {reference.parent for reference in references if reference is not None}
    return {parent for parent in parents if parent is not None}


def _of_entity(entity: NumberedEntity, reference: ContextRef) -> list[Delete]:
    number, leaving, mine = entity.number, list[Delete](), ConditionExpression()
    if entity.external_id:
        key = keys.external_id(reference.workspace, reference.kind, entity.external_id)
        leaving.append(deletion_of_external_id(key, number))
    if reference.parent is not None and entity.name is not None:
        mine.require_equal(ContextChild.number, number)
        child = keys.context_child(reference.parent, reference.kind, entity.name)
        leaving.append(Delete(child, mine))
    return [*leaving, *deletions_of_context(number)]


def deletions_of_version(version: ModelVersion, number: int) -> Iterator[Delete]:
    """Yields the deletions of all items that belong to a model version in Kubeflow's registry:
    those of :func:`deletions_of_context`, the lock of its name within its model, and its external
    id.

    Args:
        number: the version's number in Kubeflow's registry.
    """
    item = table.get(keys.context_ref(number))
    if item is not None:
        reference = ContextRef.of(item)
        if reference.parent is not None and version.kubeflow_name is not None:
            name = version.kubeflow_name
            yield Delete(keys.context_child(reference.parent, reference.kind, name))
        if version.external_id:
            key = keys.external_id(reference.workspace, reference.kind, version.external_id)
            yield deletion_of_external_id(key, number)
    yield from deletions_of_context(number)


def deletions_of_context(number: int) -> Iterator[Delete]:
    """Yields the deletions of all items of a Kubeflow context (an entity with a Kubeflow number,
    such as a model): its reference (which maps its number to MLflow's item), the items in its own
    partition, the names of its children, and artifacts created under it with their external ids.

    After an interrupted deletion, it yields the deletions that remain.
    """
    items = list(table.query_all(keys.context(number)))
    linked = [
        child.number
        for item in items
        if Item.of(item).type == ContextChild.pattern.name
        and (child := ContextChild.of(item)).kind in ARTIFACT_KINDS
    ]
    for raw in table.batch_get([keys.artifact(reference) for reference in linked]):
        if raw is not None and (artifact := Artifact.of(raw)).parent == number:
            if artifact.external_id:
                key = keys.external_id(artifact.workspace, artifact.kind, artifact.external_id)
                yield deletion_of_external_id(key, artifact.number)
            yield Delete(key_of_item(raw))
    for item in items:
        if Item.of(item).type != ContextRef.pattern.name:
            yield Delete(key_of_item(item))
    yield Delete(keys.context_ref(number))


def own_external_id(
    workspace: str, kind: str, external_id: str | None, number: int | None
) -> list[Delete]:
    """Returns the deletion of the lock of an entity's external id, for the transaction that deletes
    the entity. Empty if another entity has the lock: an entity that was moved to the default
    workspace left its own lock behind, and may share its external id there. One consistent GetItem;
    none for an entity without external id.

    Args:
        number: the entity's Kubeflow number; None if it has none.
    """
    if not external_id or number is None:
        return []
    key = keys.external_id(workspace, kind, external_id)
    item = table.get(key)
    is_own = item is not None and ExternalId.of(item).number == number
    return [deletion_of_external_id(key, number)] if is_own else []


def deletion_of_external_id(key: keys.Key, number: int) -> Delete:
    """Returns the deletion of the lock of an external id, unless another entity has taken it.

    Args:
        number: the Kubeflow number of the entity that had the external id.
    """
    mine = ConditionExpression()
    mine.require_equal(ExternalId.number, number)
    return Delete(key, mine)
