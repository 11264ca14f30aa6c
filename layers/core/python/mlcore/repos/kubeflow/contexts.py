"""What a context leaves behind when it is gone; imports nothing of what gives contexts."""

from __future__ import annotations

from collections.abc import Iterator

from mlcore.db import keys
from mlcore.db.table import key_in, table
from mlcore.kubeflow.kinds import ARTIFACT_KINDS
from mlcore.models.base import Item
from mlcore.models.kubeflow import Artifact, ContextChild, ContextRef
from mlcore.models.registry import ModelVersion


def of_version(version: ModelVersion, number: int) -> Iterator[keys.Key]:
    """As :func:`remains`, and what a version has taken of its model and its kind."""
    item = table.get(keys.context_ref(number))
    if item is not None:
        reference = ContextRef.of(item)
        if reference.parent is not None and version.kubeflow_name is not None:
            yield keys.context_child(reference.parent, reference.kind, version.kubeflow_name)
        if version.external_id:
            yield keys.external_id(reference.workspace, reference.kind, version.external_id)
    yield from remains(number)


def remains(number: int) -> Iterator[keys.Key]:
    """All items of a context: its own, the names of its children, and the artifacts that were made
    under it, with their external ids. Done again it finds what is left."""
    found = list(table.query_all(keys.context(number)))
    linked = [
        child.number
        for item in found
        if Item.of(item).type == ContextChild.pattern.name
        and (child := ContextChild.of(item)).kind in ARTIFACT_KINDS
    ]
    for raw in table.batch_get([keys.artifact(one) for one in linked]):
        if raw is not None and (artifact := Artifact.of(raw)).parent == number:
            yield key_in(raw)
            if artifact.external_id:
                yield keys.external_id(artifact.workspace, artifact.kind, artifact.external_id)
    for item in found:
        if Item.of(item).type != ContextRef.pattern.name:
            yield key_in(item)
    yield keys.context_ref(number)
