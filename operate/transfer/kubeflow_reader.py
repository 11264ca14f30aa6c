"""Reads entities of a Kubeflow model registry through its REST API (v1alpha3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from mlcore.kubeflow import body, merge, not_a_number
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import EXPERIMENT, METRIC, EntityKind
from operate.transfer.mlflow_client import Json, Server, SourceFailed

API: Final = "api/model_registry/v1alpha3"
_PAGE: Final = 200
_OF_ALL: Final = ("name", "description", "externalId", "customProperties")


class Registry:
    """Reads the lists of a Kubeflow registry. Entities are ordered by id, which is the order in
    which versions are numbered."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def entities(self, kind: EntityKind, path: str) -> list[Entity]:
        """Returns all entities in the list at a path of the Kubeflow registry's API, ordered by
        id."""
        return sorted(
            (entity(kind, fields) for fields in self.read(path)), key=lambda each: each.id
        )

    def experiments(self) -> list[Entity]:
        """Returns all experiments of the Kubeflow registry; none from an old version of it, which
        has models but no experiments. Raises SourceFailed if the registry cannot be read."""
        try:
            return self.entities(EXPERIMENT, "experiments")
        except SourceFailed as failed:
            if not failed.unknown:
                raise
        next(self.read("registered_models"), None)
        return []

    def artifacts(self, path: str) -> list[Entity]:
        """Returns the artifacts of all types in the list at a path of the Kubeflow registry's
        API."""
        entities = [entity(body.artifact_kind(fields), fields) for fields in self.read(path)]
        return sorted(entities, key=lambda each: each.id)

    def read(self, path: str) -> Iterator[Json]:
        """Yields the JSON entries of all pages of the list at a path of the Kubeflow registry's
        API."""
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
