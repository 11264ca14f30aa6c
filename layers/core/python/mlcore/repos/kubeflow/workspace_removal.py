"""Deletes what Kubeflow's registry keeps by workspace, or moves it to another workspace: the
references of versions and runs (which map numbers to MLflow's items), artifacts, serving
environments, inference services and serve models, with their external ids.

Registered models and experiments move in :mod:`mlcore.repos.removal.workspace_moves`. A call may be
interrupted and repeated: what is left is still listed in its workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.table import (
    Delete,
    ItemUpdate,
    Operation,
    Put,
    TransactionFailed,
    key_of_item,
    table,
)
from mlcore.ids import new_ulid, now_ms
from mlcore.kubeflow import kinds
from mlcore.models.kubeflow import Artifact, ContextName, ContextRef, NumberedItem
from mlcore.models.registry import ModelVersion
from mlcore.models.runs import Run
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.kubeflow import entities, numbers
from mlcore.repos.kubeflow_keys import context_items, moved_keys

_SHARED: Final = (kinds.MODEL_VERSION, kinds.EXPERIMENT_RUN)
_OWN: Final = (
    kinds.MODEL_ARTIFACT,
    kinds.SERVING_ENVIRONMENT,
    kinds.INFERENCE_SERVICE,
    kinds.SERVE_MODEL,
)
"""Kinds that only Kubeflow's registry has; artifacts of all kinds share one list."""
_CONTEXTS: Final = (kinds.SERVING_ENVIRONMENT.name, kinds.INFERENCE_SERVICE.name)
_TOGETHER: Final = 100


def environments_of(workspace: str) -> list[str]:
    """Returns the names of a workspace's serving environments; reads GSI2, which may lag."""
    listed = entities.listed(workspace, kinds.SERVING_ENVIRONMENT.name)
    items = map(NumberedItem.of, listed)
    return [item.name for item in items if item.workspace == workspace]


def artifacts_of(workspace: str) -> list[str]:
    """Returns the names of a workspace's artifacts that belong to no version or run; reads GSI2,
    which may lag."""
    items = map(Artifact.of, entities.listed(workspace, kinds.MODEL_ARTIFACT.name))
    return [item.name for item in items if item.workspace == workspace and item.parent is None]


def move(workspace: str, target: str) -> Iterator[None]:
    """Moves what is left in a workspace after its models and experiments; yields after each
    hundred entities. Reads GSI2, which may lag. Raises WriteConflict if an entity was moved,
    changed or deleted since it was read, or a serving environment's name was taken."""
    for kind in _SHARED:
        for chunk in _chunks(workspace, kind.name):
            references = numbers.find_many(chunk, kind.name, workspace)
            table.parallel([partial(_move_shared, each, target) for each in references])
            yield
    for kind in _OWN:
        for chunk in _chunks(workspace, entities.list_kind(kind.name)):
            items = entities.find_many(kind.name, chunk)
            here = [item for item in items if NumberedItem.of(item).workspace == workspace]
            table.parallel([partial(_move_own, each, target) for each in here])
            yield


def delete(workspace: str) -> Iterator[None]:
    """Deletes what is left in a workspace after its models and experiments, also deployed services;
    yields after each hundred entities. Reads GSI2, which may lag."""
    for kind in _OWN:
        for chunk in _chunks(workspace, entities.list_kind(kind.name)):
            items = entities.find_many(kind.name, chunk)
            here = [item for item in items if NumberedItem.of(item).workspace == workspace]
            context_items.delete(each for item in here for each in _deletions(item))
            yield


def _deletions(raw: Raw) -> Iterator[Delete]:
    item = NumberedItem.of(raw)
    yield from context_items.own_external_id(
        item.workspace, item.kind, item.external_id, item.number
    )
    if item.kind in _CONTEXTS:  # its partition contains the item itself, too
        yield from context_items.deletions_of_context(item.number)
    else:
        yield Delete(key_of_item(raw))
    if item.kind == kinds.SERVING_ENVIRONMENT.name:
        yield Delete(keys.context_name(item.workspace, item.kind, item.name))


def _chunks(workspace: str, kind: str) -> Iterator[Sequence[int]]:
    remaining = iter(list(entities.numbers_of(workspace, kind)))
    while chunk := list(islice(remaining, _TOGETHER)):
        yield chunk


def _move_shared(reference: ContextRef, target: str) -> None:
    workspace, kind, number = reference.workspace, reference.kind, reference.number
    mine = moved_keys.reference_update(workspace, target)
    operations: list[Operation] = [ItemUpdate(keys.context_ref(number), mine)]
    raw = table.get(numbers.key_of(reference))
    model = Run if kind == kinds.EXPERIMENT_RUN.name else ModelVersion
    if raw is not None and model.of(raw).number == number:
        external_id = model.of(raw).external_id
        change = Update()
        change.add(model.version, 1)  # else a request that has read it could give it an external id
        change.require_equal(model.number, number)
        moved_keys.require_external_id(change, model.external_id, external_id)
        external = moved_keys.external_id_move(workspace, target, kind, external_id, number)
        if not external.is_kept:
            change.remove(model.external_id)
        moved_keys.set_list_partitions(change, raw, workspace, target, kind)
        operations += [ItemUpdate(key_of_item(raw), change), *external.operations]
    _write(operations)


def _move_own(raw: Raw, target: str) -> None:
    item = NumberedItem.of(raw)
    workspace, kind = item.workspace, item.kind
    update = Update()
    external = moved_keys.external_id_move(workspace, target, kind, item.external_id, item.number)
    if not external.is_kept:
        update.remove(NumberedItem.external_id)
    update.add(NumberedItem.version, 1)
    update.set(NumberedItem.updated_at, now_ms())
    update.set(NumberedItem.workspace, target)
    update.require_equal(NumberedItem.workspace, workspace)
    moved_keys.require_external_id(update, NumberedItem.external_id, item.external_id)
    moved_keys.set_list_partitions(update, raw, workspace, target, entities.list_kind(kind))
    operations: list[Operation] = [ItemUpdate(key_of_item(raw), update), *external.operations]
    if kind == kinds.SERVING_ENVIRONMENT.name:
        key = keys.context_name(target, kind, item.name)
        name = ContextName(PK=key.pk, SK=key.sk, number=item.number, updated_at=now_ms(), version=1)
        operations += [
            Put(name.serialize(), numbers.absent()),
            Delete(keys.context_name(workspace, kind, item.name)),
        ]
    _write(operations)


def _write(operations: Sequence[Operation]) -> None:
    try:
        table.transact(operations, token=new_ulid())
    except TransactionFailed as failed:
        raise WriteConflict from failed
