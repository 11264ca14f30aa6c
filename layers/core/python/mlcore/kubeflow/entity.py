"""An entity of Kubeflow's registry as a plain value, and its JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

from mlcore.kubeflow.kinds import INT64, KINDS, Kind
from mlcore.kubeflow.properties import Properties

V1: str = "v1"
RESOLVED: str = "\0resolved"
"""The field of what an artifact's ``uri`` is shown as, where that is not as it is stored."""


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
    """By their names in JSON: str, float, int, or a list of str; without those that it has not."""

    @property
    def of_kind(self) -> Kind:
        return KINDS[self.kind]


def response(entity: Entity, api: str) -> dict[str, Any]:
    """The JSON object of an entity; ``api`` is ``v1`` or ``v1alpha3``."""
    kind = entity.of_kind
    shown: dict[str, Any] = {}
    if kind.artifact_type:
        shown["artifactType"] = kind.artifact_type
    shown["createTimeSinceEpoch"] = str(entity.create_time)
    properties = entity.properties
    shown["customProperties"] = {key: properties[key].json() for key in sorted(properties)}
    if entity.description is not None:
        shown["description"] = entity.description
    if entity.external_id is not None:
        shown["externalId"] = entity.external_id
    for field in kind.fields:
        value = entity.fields.get(field.name)
        if value is None or field.only not in ("", api):
            continue
        shown[field.name] = str(value) if field.type == INT64 and api == V1 else value
    if RESOLVED in entity.fields:
        shown["uri"] = entity.fields[RESOLVED]
    shown["id"] = str(entity.id)
    shown["lastUpdateTimeSinceEpoch"] = str(entity.update_time)
    shown["name"] = entity.name
    return shown
