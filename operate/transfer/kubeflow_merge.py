"""Merges entities of a Kubeflow model registry into those in the table."""

from __future__ import annotations

from collections.abc import Callable

from mlcore.kubeflow import body, merge
from mlcore.kubeflow.entity import RESOLVED, Entity
from mlcore.kubeflow.kinds import REFERENCE


def values(entity: Entity) -> body.Values:
    """Returns the fields of a Kubeflow entity as a parsed request body that would set them; fields
    with ids of other entities are left out."""
    left_out = {field.name for field in entity.of_kind.fields if field.type == REFERENCE} | {
        RESOLVED
    }
    fields = {name: value for name, value in entity.fields.items() if name not in left_out}
    all_fields = {
        "name": entity.name,
        "description": entity.description,
        "externalId": entity.external_id,
        **fields,
    }
    body_values: body.Values = {
        name: value for name, value in all_fields.items() if value not in (None, "")
    }
    return {**body_values, "customProperties": entity.properties}


def altering(entity: Entity) -> Callable[[Entity], Entity]:
    """Returns a function that changes an entity of the table: it sets the values of ``entity``,
    which was read from a Kubeflow model registry, and keeps custom properties that only the table's
    entity has."""
    given = values(entity)

    def alter(before: Entity) -> Entity:
        properties = {**before.properties, **entity.properties}
        return merge.merged(before, {**given, "customProperties": properties})

    return alter
