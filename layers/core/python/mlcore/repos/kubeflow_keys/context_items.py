"""Lists the items that belong to a Kubeflow context (an entity with a Kubeflow number, such as a
model, version or run), so that they can be deleted with it."""

from __future__ import annotations

from collections.abc import Iterator

from mlcore.db import keys
from mlcore.db.table import key_of_item, table
from mlcore.kubeflow.kinds import ARTIFACT_KINDS
from mlcore.models.base import Item
from mlcore.models.kubeflow import Artifact, ContextChild, ContextRef
from mlcore.models.registry import ModelVersion


def keys_of_version(version: ModelVersion, number: int) -> Iterator[keys.Key]:
    """Yields the keys of all items that belong to a model version in Kubeflow's registry: those of
    :func:`keys_of_context`, the lock of its name within its model, and its external id.

    Args:
        number: the version's number in Kubeflow's registry.
    """
    item = table.get(keys.context_ref(number))
    if item is not None:
        reference = ContextRef.of(item)
        if reference.parent is not None and version.kubeflow_name is not None:
            yield keys.context_child(reference.parent, reference.kind, version.kubeflow_name)
        if version.external_id:
            yield keys.external_id(reference.workspace, reference.kind, version.external_id)
    yield from keys_of_context(number)


def keys_of_context(number: int) -> Iterator[keys.Key]:
    """Yields the keys of all items of a Kubeflow context (an entity with a Kubeflow number, such as
    a model): its reference (which maps its number to MLflow's item), the items in its own
    partition, the names of its children, and artifacts created under it with their external ids.

    After an interrupted deletion, it yields the keys that remain.
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
            yield key_of_item(raw)
            if artifact.external_id:
                yield keys.external_id(artifact.workspace, artifact.kind, artifact.external_id)
    for item in items:
        if Item.of(item).type != ContextRef.pattern.name:
            yield key_of_item(item)
    yield keys.context_ref(number)
