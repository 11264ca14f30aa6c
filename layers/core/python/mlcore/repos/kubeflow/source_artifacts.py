"""Creates the Kubeflow model artifact for the source of a model version that MLflow created."""

from __future__ import annotations

from mlcore.db.table import Operation
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.errors import name_taken
from mlcore.kubeflow.kinds import MODEL_ARTIFACT as KIND
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import ModelVersion
from mlcore.repos.kubeflow import entities, tags, transaction_steps


def of_version(
    item: ModelVersion, model: ContextRef, number: int, artifact: int | None
) -> list[Operation]:
    """Returns the operations that create Kubeflow's model artifact of a model version, named as the
    model, in the transaction that gives the version its Kubeflow number.

    Args:
        item: the version.
        model: the reference of its model (the item that maps Kubeflow's number to MLflow's item).
        number: the Kubeflow number of the version.
        artifact: the Kubeflow number of the artifact; None for a version without one.
    """
    if artifact is None:
        return []
    entity = Entity(
        kind=KIND.name,
        id=artifact,
        name=model.name or "",
        create_time=item.creation_time,
        update_time=item.last_update_time,
        description=None,
        external_id=None,
        properties={},
        fields={"uri": item.source, "state": tags.LIVE},
    )
    location = item.storage_location if item.storage_location != item.source else None
    made = entities.creation(
        entity, model.workspace, parent=number, model=model.number, location=location
    )
    error = name_taken(KIND.title, entity.name)
    linked = transaction_steps.reserve_child_name(number, KIND, entity.name, artifact, None, error)
    return [step.operation for step in [*made, linked]]
