"""What a request makes of an entity: a new one, or the one that was there with what is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from mlcore.kubeflow import body
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import Kind

_BASE = frozenset(
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
    return {name: value for name, value in values.items() if name not in _BASE}


def created(kind: Kind, number: int, values: body.Values, now: int) -> Entity:
    """A new entity; one without a name gets a random one."""
    made = Entity(
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
    return _held(made)


def merged(entity: Entity, values: body.Values) -> Entity:
    """The entity with what is given. Custom properties are replaced as a whole; nothing else can be
    unset, and what never changes stays."""
    fixed = {field.name for field in entity.of_kind.fields if field.fixed}
    given = {name: value for name, value in own_fields(values).items() if name not in fixed}
    changed = entity._replace(
        description=values.get("description", entity.description),
        external_id=values.get("externalId", entity.external_id) or None,
        properties=values.get("customProperties", entity.properties),
        fields={**entity.fields, **given},
    )
    return _held(changed)


def _held(entity: Entity) -> Entity:
    """As it will be read."""
    empty = entity.of_kind.empty_is_none
    fields = {
        name: value for name, value in entity.fields.items() if name not in empty or value != ""
    }
    nothing = entity.description == "" and "description" in empty
    return entity._replace(fields=fields, description=None if nothing else entity.description)
