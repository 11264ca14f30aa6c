"""The searchable fields of registered models and their versions; see
:mod:`mlcore.search.fields`."""

from __future__ import annotations

from mlcore.search.fields import (
    ATTRIBUTE,
    EXPERIMENT,
    NUMBER,
    STRING,
    TAG,
    FieldKind,
    Operators,
    SearchableAttribute,
    SearchableEntity,
    valid_keys,
)

_TEXT = frozenset(("=", "!=", "LIKE", "ILIKE"))
_LIST = _TEXT | {"IN", "NOT IN"}
_NUMERIC = frozenset(("<", "<=", "=", "!=", ">=", ">"))

_TAG_KIND = FieldKind(
    TAG,
    "tag",
    STRING,
    Operators(_TEXT, "Invalid comparator for tag: {operator}"),
    "Expected a quoted string value for {label} (e.g. 'my-value'). Got value {found}",
    sortable=False,
)
_ATTRIBUTE_KIND = FieldKind(
    ATTRIBUTE,
    "attribute",
    STRING,
    Operators(frozenset(), ""),
    "Expected a quoted string value or a list of quoted string values for attributes. "
    "Got value {found}",
)
_TEXT_OPERATORS = Operators(_LIST, "Invalid comparator for attribute: {operator}")

_NAME = SearchableAttribute("name", STRING)
_CREATED = SearchableAttribute("creation_timestamp", NUMBER)
_UPDATED = SearchableAttribute("last_updated_timestamp", NUMBER)

REGISTERED_MODEL = SearchableEntity(
    name="registered model",
    kinds={"attribute": _ATTRIBUTE_KIND, "tag": _TAG_KIND, "tags": _TAG_KIND},
    quoted_kinds=False,
    unknown_kind=(
        "Invalid entity type '{found}'. Valid entity types are ('attribute', 'tag', 'tags')"
    ),
    attributes={"name": _NAME},
    sortable={"name": _NAME, "last_updated_timestamp": _UPDATED, "timestamp": _UPDATED},
    operators={STRING: _TEXT_OPERATORS},
    list_attributes=("name",),
    integers_only=True,
    clause="{found}",
    unknown_attribute="Invalid attribute key '{key}' specified. Valid keys are '{valid}'",
    not_nullable="IS NULL / IS NOT NULL is not supported for registered model search.",
    unsortable="Invalid order_by entity: {label}",
    default_order=(("name", True),),
    tie_break=(("name", True),),
)

_ORDERS = valid_keys(("name", "timestamp")).replace("{", "{{").replace("}", "}}")
REGISTERED_MODEL_ORDER = REGISTERED_MODEL._replace(
    kinds={"attribute": _ATTRIBUTE_KIND},
    unknown_kind=f"Invalid order by key '{{field}}' specified. Valid keys are '{_ORDERS}'",
    unknown_attribute=f"Invalid order by key '{{key}}' specified. Valid keys are '{_ORDERS}'",
)
"""For orders: MLflow's error messages differ from those of filters."""

_VERSION_NUMBER = SearchableAttribute("version_number", NUMBER)
_VERSION_SORTABLE = {
    "name": _NAME,
    "version_number": _VERSION_NUMBER,
    "creation_timestamp": _CREATED,
    "last_updated_timestamp": _UPDATED,
}
_VERSION_ORDERS = valid_keys(_VERSION_SORTABLE).replace("{", "{{").replace("}", "}}")

MODEL_VERSION = REGISTERED_MODEL._replace(
    not_nullable="IS NULL / IS NOT NULL is not supported for model version search.",
    name="model version",
    attributes={
        "name": _NAME,
        "run_id": SearchableAttribute("run_id", STRING),
        "source_path": SearchableAttribute("source_path", STRING),
        "version_number": _VERSION_NUMBER,
    },
    sortable=_VERSION_SORTABLE,
    unsortable=f"Invalid order by key '{{key}}' specified. Valid keys are {_VERSION_ORDERS}",
    operators={
        STRING: _TEXT_OPERATORS,
        NUMBER: Operators(_NUMERIC, "Invalid comparator for attribute version_number: {operator}"),
    },
    list_attributes=("name", "run_id"),
    default_order=(("last_updated_timestamp", False), ("name", True), ("version_number", False)),
    tie_break=(("name", True), ("version_number", False)),
    quoted_numbers=True,
    numbers_for=("creation_timestamp", "last_updated_timestamp", "version_number"),
)

MODEL_VERSION_ORDER = MODEL_VERSION._replace(
    kinds={**MODEL_VERSION.kinds, "attributes": _ATTRIBUTE_KIND},
    unknown_kind=EXPERIMENT.unknown_kind,
)
"""For orders, which MLflow's server parses as those of experiments."""
