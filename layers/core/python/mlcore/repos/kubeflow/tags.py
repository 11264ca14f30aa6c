"""Kubeflow's fields as MLflow tags.

A field without an equivalent in MLflow is the tag ``kubeflow.<field>``; lists are JSON. Custom
properties are tags under their own names; their types are kept in the item's ``property_types``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from mlcore.kubeflow import custom_properties, kinds
from mlcore.kubeflow.entity import Entity
from mlcore.kubeflow.kinds import EntityKind
from mlcore.wire.json_text import load_json

PREFIX: Final = "kubeflow."
NOTE: Final = "mlflow.note.content"
"""MLflow's tag for the description of an experiment or a run."""
LIVE: Final = "LIVE"
ARCHIVED: Final = "ARCHIVED"


class Changes(NamedTuple):
    """Changes of an item's tags: tags to set, and entries to remove, as pairs of the item's map
    attribute (such as ``tags``) and the key."""

    sets: dict[str, dict[str, str]]
    removals: list[tuple[str, str]]

    @property
    def any(self) -> bool:
        return bool(self.sets["tags"] or self.removals)


def fields_of(kind: EntityKind, tags: Mapping[str, str]) -> dict[str, Any]:
    """Returns those fields of a Kubeflow entity of the given kind that are stored as tags of
    MLflow's entity, from these tags."""
    fields: dict[str, Any] = {}
    for field in kind.fields:
        text = tags.get(PREFIX + field.name)
        if text is None:
            continue
        if field.type == kinds.TEXTS:
            fields[field.name] = _texts(text)
        elif not field.values or text in field.values:
            fields[field.name] = text
    return fields


def _texts(text: str) -> list[str]:
    """Parses the tag of a field that is a list of texts. A tag that is not such a JSON list,
    because a client wrote it by hand, becomes the only element."""
    try:
        data = load_json(text)
    except ValueError:
        return [text]
    if isinstance(data, list) and all(isinstance(each, str) for each in data):
        return data
    return [text]


def tags_of(entity: Entity, fields: Sequence[str]) -> dict[str, str]:
    """Returns the MLflow tags of a Kubeflow entity: its custom properties, and one tag for each of
    ``fields`` that has a value. The state LIVE is the default and gets no tag."""
    tags = {key: value.text() for key, value in entity.properties.items()}
    for name in fields:
        value = entity.fields.get(name)
        if value is not None and value != LIVE:
            text = json.dumps(value) if isinstance(value, list) else str(value)
            tags[PREFIX + name] = text
    return tags


def tags_of_tracked(entity: Entity, fields: Sequence[str]) -> dict[str, str]:
    """Returns the tags with which MLflow stores a Kubeflow experiment or run: those of
    :func:`tags_of`, and the tag that holds the description, if there is one."""
    tags = tags_of(entity, fields)
    return tags if entity.description is None else {**tags, NOTE: entity.description}


def changes(now: Mapping[str, str], wanted: Mapping[str, str], fields: Sequence[str]) -> Changes:
    """Returns the changes that turn an MLflow item's tags ``now`` into ``wanted``, those that a
    client of Kubeflow's API wants. Reserved tags (such as ``mlflow.…``) that ``wanted`` lacks are
    kept, except those of ``fields``.

    Args:
        fields: the fields of a Kubeflow entity of this kind that are stored as tags.
    """
    own = {PREFIX + name for name in fields}
    sets = {key: text for key, text in wanted.items() if now.get(key) != text}
    gone = [
        ("tags", key)
        for key in now
        if key not in wanted and (key in own or not custom_properties.is_reserved(key))
    ]
    return Changes({"tags": sets}, gone)
