"""An entity of Kubeflow's registry as a plain value, and its JSON form."""

from __future__ import annotations

from typing import Any, NamedTuple

from mlcore.kubeflow.custom_properties import Properties
from mlcore.kubeflow.kinds import INT64, KINDS, EntityKind

V1: str = "v1"
RESOLVED: str = "\0resolved"
"""Key in ``fields`` of the ``uri`` to show for an artifact, where it differs from the stored
one."""


class Entity(NamedTuple):
    kind: str
    id: int
    name: str
    create_time: int
    update_time: int
    description: str | None
    external_id: str | None
    properties: Properties
    fields: dict[str, Any]
    """Values by JSON name: str, float, int or list of str. Fields without a value are missing."""

    @property
    def of_kind(self) -> EntityKind:
        return KINDS[self.kind]


def response(entity: Entity, api: str) -> dict[str, Any]:
    """Returns the JSON object of a Kubeflow entity in API version ``api``: ``v1`` or
    ``v1alpha3``."""
    kind = entity.of_kind
    data: dict[str, Any] = {}
    if kind.artifact_type:
        data["artifactType"] = kind.artifact_type
    data["createTimeSinceEpoch"] = str(entity.create_time)
    properties = entity.properties
    data["customProperties"] = {key: properties[key].json() for key in sorted(properties)}
    if entity.description is not None:
        data["description"] = entity.description
    if entity.external_id is not None:
        data["externalId"] = entity.external_id
    for field in kind.fields:
        value = entity.fields.get(field.name)
        if value is None or field.only not in ("", api):
            continue
        data[field.name] = str(value) if field.type == INT64 and api == V1 else value
    if RESOLVED in entity.fields:
        data["uri"] = entity.fields[RESOLVED]
    data["id"] = str(entity.id)
    data["lastUpdateTimeSinceEpoch"] = str(entity.update_time)
    data["name"] = entity.name
    return data
