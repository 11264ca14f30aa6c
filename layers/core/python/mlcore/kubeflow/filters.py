"""What a filterQuery may name of each kind, and how it is found in an entity."""

from __future__ import annotations

from typing import Any, Final

from mlcore.kubeflow import kinds, properties
from mlcore.kubeflow.entity import RESOLVED, Entity
from mlcore.kubeflow.kinds import KINDS
from mlcore.search import filter_query
from mlcore.search.filter_query import DOUBLE, INT, TEXT, Source, Test

_OF_ALL: Final = {
    "id": INT,
    "name": TEXT,
    "externalId": TEXT,
    "createTimeSinceEpoch": INT,
    "lastUpdateTimeSinceEpoch": INT,
}
_TYPES: Final = {
    kinds.DOUBLE: DOUBLE,
    kinds.INT64: INT,
    kinds.TIME: INT,
    kinds.REFERENCE: INT,
}
_NOT_KNOWN: Final = {
    kinds.REGISTERED_MODEL.name: {
        *("readme", "maturity", "language", "tasks", "provider"),
        *("logo", "license", "licenseLink", "libraryName"),
    },
}
"""Own fields that a filter takes for custom properties, as upstream does."""


def test_of(text: str, kind: str) -> Test:
    """The test that a filter on entities of a kind asks for. Raises InvalidParameterValue."""
    return filter_query.parse(text, _source(kind))


def _source(kind: str) -> Source:
    left_out = _NOT_KNOWN.get(kind, set())
    own = {
        field.name: _TYPES.get(field.type, TEXT)
        for field in KINDS[kind].fields
        if field.name not in left_out
    }
    return Source(_OF_ALL | own, _attribute, _custom)


def pinned(text: str, kind: str) -> dict[str, str]:
    """The texts that a filter demands of an entity's own properties, such as its name: no entity
    with others meets it. Raises InvalidParameterValue."""
    return {
        leaf.name: leaf.equal
        for leaf in filter_query.demanded(filter_query.read(text, _source(kind)))
        if leaf.known and isinstance(leaf.equal, str)
    }


def _attribute(entity: Entity, name: str) -> Any:
    match name:
        case "id":
            return entity.id
        case "name":
            return entity.name
        case "externalId":
            return entity.external_id
        case "createTimeSinceEpoch":
            return entity.create_time
        case "lastUpdateTimeSinceEpoch":
            return entity.update_time
        case "uri" if RESOLVED in entity.fields:
            return entity.fields[RESOLVED]
    value = entity.fields.get(name)
    field = entity.of_kind.field(name)
    if isinstance(value, str) and field is not None and field.type in _TYPES:
        return int(value) if value.lstrip("-").isdecimal() else None
    return value


def _custom(entity: Entity, name: str) -> tuple[str, Any] | None:
    found = entity.properties.get(name)
    if found is not None:
        return properties.MEMBER[found.type], found.value
    if name == "description" and entity.description is not None:
        return TEXT, entity.description
    return None
