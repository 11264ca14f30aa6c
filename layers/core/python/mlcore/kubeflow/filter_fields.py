"""The names that a ``filterQuery`` (Kubeflow's filter language) may use for each kind of entity,
and how their values are read.
"""

from __future__ import annotations

from typing import Any, Final

from mlcore.kubeflow import custom_properties, kinds
from mlcore.kubeflow.entity import RESOLVED, Entity
from mlcore.kubeflow.kinds import KINDS
from mlcore.search import kubeflow_filter
from mlcore.search.kubeflow_filter import DOUBLE, INT, TEXT, PropertySource, Test

_COMMON_FIELDS: Final = {
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
_READ_AS_CUSTOM: Final = {
    kinds.REGISTERED_MODEL.name: {
        *("readme", "maturity", "language", "tasks", "provider"),
        *("logo", "license", "licenseLink", "libraryName"),
    },
}
"""Fields that a filter looks up among the custom properties instead, as upstream does."""


def test_of(text: str, kind: str) -> Test:
    """Parses a filter on Kubeflow entities of a kind and returns a function that says whether an
    entity meets it. Raises InvalidParameterValue."""
    return kubeflow_filter.parse_test(text, _source(kind))


def _source(kind: str) -> PropertySource:
    excluded = _READ_AS_CUSTOM.get(kind, set())
    field_types = {
        field.name: _TYPES.get(field.type, TEXT)
        for field in KINDS[kind].fields
        if field.name not in excluded
    }
    return PropertySource(_COMMON_FIELDS | field_types, _attribute, _custom_property)


def required_texts(text: str, kind: str) -> dict[str, str]:
    """Returns, by field name, the texts that a filter requires some fields of a Kubeflow entity,
    such as its name, to equal. Raises InvalidParameterValue."""
    return {
        leaf.name: leaf.equal
        for leaf in kubeflow_filter.required_tests(kubeflow_filter.parse_node(text, _source(kind)))
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


def _custom_property(entity: Entity, name: str) -> tuple[str, Any] | None:
    property_ = entity.properties.get(name)
    if property_ is not None:
        return custom_properties.MEMBER[property_.type], property_.value
    if name == "description" and entity.description is not None:
        return TEXT, entity.description
    return None
