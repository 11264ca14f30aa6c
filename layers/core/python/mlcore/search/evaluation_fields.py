"""The searchable fields of evaluation datasets and issues; see :mod:`mlcore.search.fields`."""

from __future__ import annotations

from mlcore.search.fields import (
    ATTRIBUTE,
    NUMBER,
    STRING,
    TAG,
    FieldKind,
    Operators,
    SearchableAttribute,
    SearchableEntity,
)

_TEXT = frozenset(("=", "!=", "LIKE", "ILIKE"))
_NUMERIC = frozenset(("<", "<=", "=", "!=", ">=", ">"))
_LIST_EXPECTED = (
    "Expected a quoted string value or a list of quoted string values for attributes. "
    "Got value {found}"
)

_ATTRIBUTE_KIND = FieldKind(
    ATTRIBUTE, "attribute", STRING, Operators(frozenset(), ""), _LIST_EXPECTED
)
_DATASET_KIND = _ATTRIBUTE_KIND._replace(
    expects="Expected a quoted string value for attributes. Got value {found}"
)
_TAG_KIND = FieldKind(
    TAG,
    "tag",
    STRING,
    Operators(_TEXT, "Invalid comparator for tag: {operator}"),
    "Expected a quoted string value for {label} (e.g. 'my-value'). Got value {found}",
    sortable=False,
)

_NAME = SearchableAttribute("name", STRING)
_CREATED = SearchableAttribute("created_time", NUMBER)
_UPDATED = SearchableAttribute("last_update_time", NUMBER)
_SORTABLE = {"name": _NAME, "created_time": _CREATED, "last_update_time": _UPDATED}

EVALUATION_DATASET = SearchableEntity(
    name="evaluation dataset",
    kinds={"attribute": _DATASET_KIND, "tags": _TAG_KIND},
    quoted_kinds=False,
    unknown_kind="Invalid identifier token '{found}' specified",
    attributes={
        **_SORTABLE,
        "created_by": SearchableAttribute("created_by", STRING),
        "last_updated_by": SearchableAttribute("last_updated_by", STRING),
    },
    sortable={**_SORTABLE, "dataset_id": SearchableAttribute("dataset_id", STRING)},
    operators={
        STRING: Operators(
            _TEXT | _NUMERIC | {"IN"}, "Invalid comparator for string attribute: {operator}"
        ),
        NUMBER: Operators(_NUMERIC, "Invalid comparator for numeric attribute: {operator}"),
    },
    list_attributes=("name",),
    integers_only=True,
    clause="{found}",
    unknown_attribute="Invalid attribute key '{key}' specified. Valid keys are: {valid}",
    not_nullable="IS NULL / IS NOT NULL is not supported for '{key}'",
    unsortable="Invalid order_by entity: {label}",
    list_refusal="List values for 'name' are only supported with the IN comparator.",
    default_order=(("created_time", False), ("dataset_id", False)),
    tie_break=(("dataset_id", False),),
)

EVALUATION_DATASET_ORDER = EVALUATION_DATASET._replace(sortable=_SORTABLE)
"""For orders: ids break ties but cannot be ordered by."""

_EQUAL = Operators(
    frozenset(("=", "!=")), "Invalid comparator '{operator}'. Supported comparators: {{'!=', '='}}"
)
_ISSUE_ATTRIBUTES = {
    "status": SearchableAttribute("status", STRING),
    "source_run_id": SearchableAttribute("source_run_id", STRING),
}

ISSUE = EVALUATION_DATASET._replace(
    name="issue",
    kinds={"attribute": _ATTRIBUTE_KIND},
    unknown_kind="Invalid filter field '{found}'. Supported fields: {{'source_run_id', 'status'}}",
    attributes=_ISSUE_ATTRIBUTES,
    sortable={},
    operators={STRING: _EQUAL},
    list_attributes=(),
    unknown_attribute="Invalid filter field '{key}'. Supported fields: {valid}",
    quotes_optional=True,
    default_order=(),
    tie_break=(),
)
