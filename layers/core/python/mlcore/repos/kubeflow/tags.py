"""How MLflow's tags carry what Kubeflow knows: fields under ``kubeflow.``, properties as they are.

A field that MLflow has no word for is the tag ``kubeflow.<field>``; lists are JSON. The types of
properties are kept in the item's ``property_types``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from mlcore.db.expression import Update
from mlcore.kubeflow import kinds, properties
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import Kind

PREFIX: Final = "kubeflow."
NOTE: Final = "mlflow.note.content"
"""MLflow's tag for the description of an experiment or a run."""
LIVE: Final = "LIVE"
ARCHIVED: Final = "ARCHIVED"


class Changes(NamedTuple):
    """Of tags: what to set, and (map, key) pairs to remove."""

    sets: dict[str, dict[str, str]]
    removals: list[tuple[str, str]]

    @property
    def any(self) -> bool:
        return bool(self.sets["tags"] or self.removals)


def fields_of(kind: Kind, tags: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a kind that tags carry."""
    found: dict[str, Any] = {}
    for field in kind.fields:
        text = tags.get(PREFIX + field.name)
        if text is None:
            continue
        if field.type == kinds.TEXTS:
            found[field.name] = _texts(text)
        elif not field.values or text in field.values:
            found[field.name] = text
    return found


def _texts(text: str) -> list[str]:
    """A list; a tag that MLflow's client wrote by hand may be none."""
    try:
        data = json.loads(text)
    except ValueError:
        return [text]
    if isinstance(data, list) and all(isinstance(each, str) for each in data):
        return data
    return [text]


def tags_of(entity: Entity, fields: Sequence[str]) -> dict[str, str]:
    """The tags that an entity is: its properties, and those of its fields that tags carry. A state
    of LIVE is no tag."""
    found = {key: value.text() for key, value in entity.properties.items()}
    for name in fields:
        value = entity.fields.get(name)
        if value is not None and value != LIVE:
            text = json.dumps(value) if isinstance(value, list) else str(value)
            found[PREFIX + name] = text
    return found


def tags_of_tracked(entity: Entity, fields: Sequence[str]) -> dict[str, str]:
    """As :func:`tags_of`, of an experiment or a run: their description is a tag too."""
    found = tags_of(entity, fields)
    return found if entity.description is None else {**found, NOTE: entity.description}


def changes(now: Mapping[str, str], wanted: Mapping[str, str], fields: Sequence[str]) -> Changes:
    """What makes the tags as wanted. Tags of the systems that no field is stay."""
    own = {PREFIX + name for name in fields}
    sets = {key: text for key, text in wanted.items() if now.get(key) != text}
    gone = [
        ("tags", key)
        for key in now
        if key not in wanted and (key in own or not properties.is_reserved(key))
    ]
    return Changes({"tags": sets}, gone)


def untype(
    update: Update,
    attribute: Any,
    types: Mapping[str, str] | None,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
) -> None:
    """A tag that MLflow writes or takes away is a string from then on."""
    if types:
        for key in dict.fromkeys((*sets.get("tags", ()), *(key for _, key in removals))):
            if key in types:
                update.remove((attribute, key))
