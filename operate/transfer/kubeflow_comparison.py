"""Compares entities of a Kubeflow model registry with those in the table, so that an import writes
only what differs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mlcore.kubeflow.entity import RESOLVED, Entity
from mlcore.kubeflow.kinds import METRIC, REFERENCE
from operate.transfer.transfer_item import Content

LOGGED: Final = ("value", "timestamp", "step")
"""Fields of a metric that a run's history holds."""


def content(entity: Entity) -> Content:
    """Returns the fields of a Kubeflow entity by which an import compares it: all that are set,
    except its name and ids of other entities."""
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


def labelled(artifacts: list[Entity]) -> dict[str, Entity]:
    """Returns Kubeflow artifacts of one model version or run, by a label of type and name. If
    several have the same type and name, as data sets may, the labels of the later ones get a
    number, in the order of their ids."""
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
    """Returns the content of an entity in the table (``have``) without the fields that its content
    in the Kubeflow registry (``want``) lacks: additional fields in the table are no difference."""
    if want is None or have is None:
        return have
    return {
        key: within(want[key], value)
        if isinstance(value, Mapping) and isinstance(want[key], Mapping)
        else value
        for key, value in have.items()
        if key in want
    }
