"""Reads entities of a Kubeflow model registry through its REST API (v1alpha3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mlcore.kubeflow import body, merge, not_a_number
from mlcore.kubeflow.entity import RESOLVED, Entity
from mlcore.kubeflow.kinds import EXPERIMENT, METRIC, REFERENCE, EntityKind
from operate.transfer.mlflow_server import Json, Server, SourceFailed
from operate.transfer.transfer_item import Content

API: Final = "api/model_registry/v1alpha3"
_PAGE: Final = 200
_OF_ALL: Final = ("name", "description", "externalId", "customProperties")
LOGGED: Final = ("value", "timestamp", "step")
"""Fields of a metric that a run's history holds."""


class Registry:
    """Reads the lists of a Kubeflow registry. Entities are ordered by id, which is the order in
    which versions are numbered."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def entities(self, kind: EntityKind, path: str) -> list[Entity]:
        """Returns all entities in the registry's list at a path, ordered by id."""
        return sorted(
            (entity(kind, fields) for fields in self.read(path)), key=lambda each: each.id
        )

    def experiments(self) -> list[Entity]:
        """Returns all experiments of the registry; none from an old registry, which has models but
        no experiments. Raises SourceFailed if the registry cannot be read."""
        try:
            return self.entities(EXPERIMENT, "experiments")
        except SourceFailed as failed:
            if not failed.unknown:
                raise
        next(self.read("registered_models"), None)
        return []

    def artifacts(self, path: str) -> list[Entity]:
        """Returns the artifacts of all types in the registry's list at a path."""
        entities = [entity(body.artifact_kind(fields), fields) for fields in self.read(path)]
        return sorted(entities, key=lambda each: each.id)

    def read(self, path: str) -> Iterator[Json]:
        """Yields the JSON entries of all pages of the registry's list at a path."""
        parameters: dict[str, Any] = {"pageSize": _PAGE, "orderBy": "ID", "sortOrder": "ASC"}
        seen: set[str] = set()
        while True:
            page = self._server.get(f"{API}/{path}", **parameters)
            yield from page.get("items") or ()
            token = page.get("nextPageToken") or ""
            if not token or token in seen:
                return
            seen.add(token)
            parameters["nextPageToken"] = token


def entity(kind: EntityKind, body_fields: Json) -> Entity:
    """Converts an entry of a list of the Kubeflow registry to an entity of this product, with the
    registry's number and times. Fields that this product does not know are dropped. Raises
    InvalidParameterValue if a value is not allowed by the API."""
    known = {*_OF_ALL, *(field.name for field in kind.fields)}
    fields = {name: value for name, value in body_fields.items() if name in known}
    if kind.name == METRIC.name:
        fields.setdefault("value", math.nan)  # JSON has no word for it
    values = body.values_of(kind, fields, body.UPSERT)
    if kind.name == METRIC.name:
        values = not_a_number.unmark_nan(values)
    made = int(body_fields.get("createTimeSinceEpoch") or 0)
    read_entity = merge.created(kind, int(body_fields["id"]), values, made)
    return read_entity._replace(
        update_time=int(body_fields.get("lastUpdateTimeSinceEpoch") or made)
    )


def content(entity: Entity) -> Content:
    """Returns the fields of an entity by which an import compares it: all that are set, except ids
    of other entities."""
    left_out = {field.name for field in entity.of_kind.fields if field.type == REFERENCE} | {
        RESOLVED
    }
    all_fields = {
        "description": entity.description,
        "externalId": entity.external_id,
        "customProperties": {key: value.json() for key, value in entity.properties.items()},
        **{name: value for name, value in entity.fields.items() if name not in left_out},
    }
    return {name: value for name, value in all_fields.items() if value not in (None, "", [], {})}


def values(entity: Entity) -> body.Values:
    """Returns the values of an entity in the form of a checked request body, without ids of other
    entities."""
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
    """Returns a function that changes an entity of the table: it sets the values of ``entity``, the
    registry's entity, and keeps the table's other custom properties."""
    given = values(entity)

    def alter(before: Entity) -> Entity:
        properties = {**before.properties, **entity.properties}
        return merge.merged(before, {**given, "customProperties": properties})

    return alter


def labelled(artifacts: list[Entity]) -> dict[str, Entity]:
    """Returns the artifacts of one parent, by a label of type and name. If several have the same
    type and name, as data sets may, the later ones get a number in the order of their ids."""
    by_label: dict[str, Entity] = {}
    for each in sorted(artifacts, key=lambda artifact: artifact.id):
        label, number = f"{each.of_kind.artifact_type} {each.name}", 1
        while (numbered := label if number == 1 else f"{label} #{number}") in by_label:
            number += 1
        by_label[numbered] = each
    return by_label


def contents(artifacts: Mapping[str, Entity], *, of_run: bool = False) -> dict[str, Content]:
    """Returns for each artifact the fields by which an import compares it. Of a run's metric the
    logged value is left out, because metrics are compared by their history."""
    contents_by_label: dict[str, Content] = {}
    for label, artifact in artifacts.items():
        fields = dict(content(artifact))
        if of_run and artifact.kind == METRIC.name:
            fields = {name: value for name, value in fields.items() if name not in LOGGED}
        contents_by_label[label] = fields
    return contents_by_label


def within(want: Content | None, have: Content | None) -> Content | None:
    """Returns the table's content ``have`` without the fields that the registry's content ``want``
    lacks: additional fields in the table do not count as a difference."""
    if want is None or have is None:
        return have
    return {
        key: within(want[key], value)
        if isinstance(value, Mapping) and isinstance(want[key], Mapping)
        else value
        for key, value in have.items()
        if key in want
    }
