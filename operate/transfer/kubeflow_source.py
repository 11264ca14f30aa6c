"""Entities of a Kubeflow model registry, read through its REST API (v1alpha3); writes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mlcore.kubeflow import body, merge, not_a_number
from mlcore.kubeflow.entity import RESOLVED, Entity
from mlcore.kubeflow.kinds import EXPERIMENT, METRIC, REFERENCE, Kind
from operate.transfer.item import Content
from operate.transfer.rest import Json, Server, SourceFailed

API: Final = "api/model_registry/v1alpha3"
_PAGE: Final = 200
_OF_ALL: Final = ("name", "description", "externalId", "customProperties")
LOGGED: Final = ("value", "timestamp", "step")
"""What a run's history holds of a metric."""


class Registry:
    """The lists of a registry, each in the order of its ids, by which versions are counted."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def entities(self, kind: Kind, path: str) -> list[Entity]:
        """All of a list."""
        return sorted((entity(kind, told) for told in self.told(path)), key=lambda one: one.id)

    def experiments(self) -> list[Entity]:
        """All; an old registry, which has models, has no such list. Raises SourceFailed."""
        try:
            return self.entities(EXPERIMENT, "experiments")
        except SourceFailed as failed:
            if not failed.unknown:
                raise
        next(self.told("registered_models"), None)
        return []

    def artifacts(self, path: str) -> list[Entity]:
        """Of all types."""
        found = [entity(body.artifact_kind(told), told) for told in self.told(path)]
        return sorted(found, key=lambda one: one.id)

    def told(self, path: str) -> Iterator[Json]:
        """All pages of a list."""
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


def entity(kind: Kind, told: Json) -> Entity:
    """An entity under the server's number, with its times; fields that this product does not know
    are left out. Raises InvalidParameterValue: it holds what the API does not allow."""
    known = {*_OF_ALL, *(field.name for field in kind.fields)}
    fields = {name: value for name, value in told.items() if name in known}
    if kind.name == METRIC.name:
        fields.setdefault("value", math.nan)  # JSON has no word for it
    values = body.values_of(kind, fields, body.WHOLE)
    if kind.name == METRIC.name:
        values = not_a_number.understood(values)
    made = int(told.get("createTimeSinceEpoch") or 0)
    found = merge.created(kind, int(told["id"]), values, made)
    return found._replace(update_time=int(told.get("lastUpdateTimeSinceEpoch") or made))


def content(one: Entity) -> Content:
    """What is compared of an entity: all that somebody has said, but for ids of others."""
    left_out = {field.name for field in one.of_kind.fields if field.type == REFERENCE} | {RESOLVED}
    told = {
        "description": one.description,
        "externalId": one.external_id,
        "customProperties": {key: value.json() for key, value in one.properties.items()},
        **{name: value for name, value in one.fields.items() if name not in left_out},
    }
    return {name: value for name, value in told.items() if value not in (None, "", [], {})}


def values(one: Entity) -> body.Values:
    """An entity as the body of a request, checked, would give it; without ids of others."""
    left_out = {field.name for field in one.of_kind.fields if field.type == REFERENCE} | {RESOLVED}
    fields = {name: value for name, value in one.fields.items() if name not in left_out}
    told = {
        "name": one.name,
        "description": one.description,
        "externalId": one.external_id,
        **fields,
    }
    found: body.Values = {name: value for name, value in told.items() if value not in (None, "")}
    return {**found, "customProperties": one.properties}


def altering(one: Entity) -> Callable[[Entity], Entity]:
    """Makes of the table's entity what the server's is; properties that it has alone stay."""
    given = values(one)

    def alter(before: Entity) -> Entity:
        properties = {**before.properties, **one.properties}
        return merge.merged(before, {**given, "customProperties": properties})

    return alter


def labelled(found: list[Entity]) -> dict[str, Entity]:
    """Artifacts of one parent by what tells them apart: type and name, and among data sets of one
    name, which may be many, the place."""
    by_label: dict[str, Entity] = {}
    for one in sorted(found, key=lambda each: each.id):
        label, place = f"{one.of_kind.artifact_type} {one.name}", 1
        while (numbered := label if place == 1 else f"{label} #{place}") in by_label:
            place += 1
        by_label[numbered] = one
    return by_label


def contents(found: Mapping[str, Entity], *, of_run: bool = False) -> dict[str, Content]:
    """Of artifacts; a run's metrics are compared by their history."""
    told: dict[str, Content] = {}
    for label, one in found.items():
        fields = dict(content(one))
        if of_run and one.kind == METRIC.name:
            fields = {name: value for name, value in fields.items() if name not in LOGGED}
        told[label] = fields
    return told


def within(want: Content | None, have: Content | None) -> Content | None:
    """What the table has of that which the server has: the table may have more."""
    if want is None or have is None:
        return have
    return {
        key: within(want[key], value)
        if isinstance(value, Mapping) and isinstance(want[key], Mapping)
        else value
        for key, value in have.items()
        if key in want
    }
