"""Makes the Kubeflow entity that results from a create or update request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from mlcore.kubeflow import body
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import EntityKind

_COMMON_FIELDS = frozenset(
    {
        "name",
        "description",
        "externalId",
        "customProperties",
        "id",
        "artifactType",
        "createTimeSinceEpoch",
        "lastUpdateTimeSinceEpoch",
    }
)


def own_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in _COMMON_FIELDS}


def created(kind: EntityKind, number: int, values: body.Values, now: int) -> Entity:
    """Returns the new Kubeflow entity that a create request describes. Without a name it gets a
    random UUID."""
    entity = Entity(
        kind=kind.name,
        id=number,
        name=values.get("name") or str(uuid4()),
        create_time=now,
        update_time=now,
        description=values.get("description"),
        external_id=values.get("externalId") or None,
        properties=values.get("customProperties", {}),
        fields={**body.defaults(kind), **own_fields(values)},
    )
    return _as_stored(entity)


def merged(entity: Entity, values: body.Values) -> Entity:
    """Returns the Kubeflow entity as an update request changes it. Custom properties are replaced
    as a whole. Fields that the request omits, and fields that are fixed at creation, stay."""
    fixed = {field.name for field in entity.of_kind.fields if field.fixed}
    changes = {name: value for name, value in own_fields(values).items() if name not in fixed}
    changed = entity._replace(
        description=values.get("description", entity.description),
        external_id=values.get("externalId", entity.external_id) or None,
        properties=values.get("customProperties", entity.properties),
        fields={**entity.fields, **changes},
    )
    return _as_stored(changed)


def _as_stored(entity: Entity) -> Entity:
    """Returns the entity as it will be read again: without the empty texts that MLflow does not
    store."""
    optional = entity.of_kind.empty_is_none
    fields = {
        name: value for name, value in entity.fields.items() if name not in optional or value != ""
    }
    description_is_none = entity.description == "" and "description" in optional
    return entity._replace(
        fields=fields, description=None if description_is_none else entity.description
    )
