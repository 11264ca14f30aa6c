"""The searchable fields of runs and experiments, as data: names, types, operators, error messages.

Each kind of entity (run, experiment, model …) is one :class:`SearchableEntity`. The messages are
MLflow's, with the placeholders ``{operator}``, ``{key}``, ``{label}`` and ``{found}``.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from mlcore import reserved_tags

METRIC = "metric"
PARAM = "param"
TAG = "tag"
ATTRIBUTE = "attribute"
DATASET = "dataset"

NUMBER = "number"
STRING = "string"
IDENTIFIER = "identifier"
"""The type of ids that filters write as texts, but that MLflow's database stores as numbers. They
can only be tested for equality and membership in a list."""


def _as_set(*words: str) -> str:
    """Returns the words as MLflow prints a Python set (``{'a', 'b'}``), sorted."""
    return "{" + ", ".join(repr(word) for word in sorted(words)) + "}"


class Operators(NamedTuple):
    """The operators that fields of one type allow in a filter, and the error message (``refusal``)
    for all others."""

    allowed: frozenset[str]
    refusal: str


class SearchableAttribute(NamedTuple):
    """Where a search reads an attribute of an entity (such as a run): in the entity's field
    ``name`` or, if ``tag`` is set, in the entity's tag with that key."""

    name: str
    type: str
    tag: str = ""


class FieldKind(NamedTuple):
    """A family of fields of search filters with a common prefix, such as ``metrics.<key>``: the
    type of its values, its operators and error messages. ``label``: its name in MLflow's messages.
    """

    name: str
    label: str
    type: str
    operators: Operators
    expects: str
    keys: tuple[str, ...] = ()
    """The valid keys; empty if any key is valid."""
    unknown_key: str = ""
    lists: bool = False
    nullable: bool = False
    sortable: bool = True


class SearchableEntity(NamedTuple):
    """The rules for filters and orders of one kind of entity (such as runs): the fields, their
    operators, the default order, and MLflow's error messages for everything else."""

    name: str
    kinds: dict[str, FieldKind]
    """The kinds of fields, by each word that may stand before the first dot of a name."""
    quoted_kinds: bool
    """Whether the word before the first dot may be in backticks."""
    unknown_kind: str
    """Refusal of another word before the first dot (``found``) of a name (``field``)."""
    attributes: dict[str, SearchableAttribute]
    """The attributes, by each name and alias that a filter may use."""
    sortable: dict[str, SearchableAttribute]
    operators: dict[str, Operators]
    """Operators of attributes, by type."""
    list_attributes: tuple[str, ...]
    integers_only: bool
    clause: str
    """Format of an invalid clause in an error message."""
    unknown_attribute: str
    not_nullable: str
    unsortable: str
    default_order: tuple[tuple[str, bool], ...]
    tie_break: tuple[tuple[str, bool], ...]
    """(attribute, ascending) pairs to append to a requested order that does not name them."""
    quoted_numbers: bool = False
    """Whether a number may be in quotes."""
    numbers_for: tuple[str, ...] = ()
    """The numeric attributes that MLflow names if a text attribute is compared with a number."""
    words: Container[str] = ()
    """SQL keywords that are names in this entity's filters."""
    unlisted: str = (
        "Only {valid} attributes support comparison with a list of quoted string values."
    )
    """Refusal of a list for an attribute that is not in ``list_attributes``."""
    list_refusal: str = "Invalid comparator '{operator}' for value {value!r}"
    """Refusal of a list for another operator than IN, or of a single value for IN."""
    quotes_optional: bool = False
    """Whether texts need no quotes."""


_NUMERIC = frozenset(("<", "<=", "=", "!=", ">=", ">"))
_TEXT = frozenset(("=", "!=", "LIKE", "ILIKE"))
_LIST = _TEXT | {"IN", "NOT IN"}
_NULLABLE = _TEXT | {"IS NULL", "IS NOT NULL"}

# Some of MLflow's messages lack the closing quote.
_NOT_ONE_OF = "Invalid comparator '{{operator}}' not one of '{0}"
_UNKNOWN_ATTRIBUTE = "Invalid attribute key '{key}' specified. Valid keys are '{valid}'"
_EXPECTS_NUMBER = "Expected numeric value type for metric. Found {found}"
_EXPECTS_STRING = "Expected a quoted string value for {label} (e.g. 'my-value'). Got value {found}"


def _operators(
    allowed: frozenset[str], quote: str = "", names: frozenset[str] | None = None
) -> Operators:
    return Operators(
        allowed,
        _NOT_ONE_OF.format(_as_set(*(names or allowed)).replace("{", "{{").replace("}", "}}"))
        + quote,
    )


_RUN_METRIC = FieldKind(METRIC, "metric", NUMBER, _operators(_NUMERIC), _EXPECTS_NUMBER)
_RUN_PARAM = FieldKind(
    PARAM, "parameter", STRING, _operators(_NULLABLE, "'"), _EXPECTS_STRING, nullable=True
)
_RUN_TAG = FieldKind(TAG, "tag", STRING, _operators(_NULLABLE), _EXPECTS_STRING, nullable=True)
_DATASET_KEYS = ("context", "digest", "name")
_RUN_DATASET = FieldKind(
    DATASET,
    "dataset",
    STRING,
    _operators(_LIST),
    "Expected a quoted string value for dataset attributes. Got value {found}",
    keys=_DATASET_KEYS,
    unknown_key="Invalid dataset key '{key}' specified. Valid keys are '{valid}'",
    lists=True,
    sortable=False,
)
# The operators of an attribute depend on its type: see SearchableEntity.operators.
_ATTRIBUTE = FieldKind(
    ATTRIBUTE,
    "attribute",
    STRING,
    Operators(frozenset(), ""),
    "Expected a quoted string value for attributes. Got value {found}",
)

_START_TIME = SearchableAttribute("start_time", NUMBER)
_RUN_NAME = SearchableAttribute("run_name", STRING, tag=reserved_tags.RUN_NAME)
_RUN_ORDERABLE = {
    "artifact_uri": SearchableAttribute("artifact_uri", STRING),
    "end_time": SearchableAttribute("end_time", NUMBER),
    "run_id": SearchableAttribute("run_id", STRING),
    "run_name": _RUN_NAME,
    "start_time": _START_TIME,
    "status": SearchableAttribute("status", STRING),
    "user_id": SearchableAttribute("user_id", STRING),
    "created": _START_TIME,
    "Created": _START_TIME,
}

RUN = SearchableEntity(
    name="run",
    kinds={
        **dict.fromkeys(("metric", "metrics"), _RUN_METRIC),
        **dict.fromkeys(("parameter", "parameters", "param", "params"), _RUN_PARAM),
        **dict.fromkeys(("tag", "tags"), _RUN_TAG),
        **dict.fromkeys(("attribute", "attributes", "attr", "run"), _ATTRIBUTE),
        **dict.fromkeys(("dataset", "datasets"), _RUN_DATASET),
    },
    quoted_kinds=True,
    unknown_kind=(
        "Invalid entity type '{found}'. "
        "Valid values are ['metric', 'parameter', 'tag', 'attribute', 'dataset']"
    ),
    attributes={**_RUN_ORDERABLE, **dict.fromkeys(("run name", "Run name", "Run Name"), _RUN_NAME)},
    sortable=_RUN_ORDERABLE,
    operators={STRING: _operators(_LIST, "'"), NUMBER: _operators(_NUMERIC, names=_LIST)},
    list_attributes=("run_id",),
    integers_only=False,
    clause="'{found}'",
    unknown_attribute=_UNKNOWN_ATTRIBUTE,
    not_nullable=(
        "IS NULL / IS NOT NULL is only supported for tags and params, not for '{label}' '{key}'"
    ),
    unsortable="Invalid identifier type '{label}'",
    default_order=(("start_time", False), ("run_id", True)),
    tie_break=(("start_time", False), ("run_id", True)),
)

_EXPERIMENT_ATTRIBUTES = {
    "creation_time": SearchableAttribute("creation_time", NUMBER),
    "experiment_id": SearchableAttribute("experiment_id", IDENTIFIER),
    "last_update_time": SearchableAttribute("last_update_time", NUMBER),
    "name": SearchableAttribute("name", STRING),
}
_EXPERIMENT_TAG = FieldKind(
    TAG,
    "tag",
    STRING,
    Operators(_NULLABLE, "Invalid comparator for tag: {operator}"),
    _EXPECTS_STRING,
    nullable=True,
    sortable=False,
)

EXPERIMENT = SearchableEntity(
    name="experiment",
    kinds={
        **dict.fromkeys(("attribute", "attributes"), _ATTRIBUTE),
        **dict.fromkeys(("tag", "tags"), _EXPERIMENT_TAG),
    },
    quoted_kinds=False,
    unknown_kind=(
        "Invalid entity type '{found}'. "
        "Valid entity types are ('attribute', 'attributes', 'tag', 'tags')"
    ),
    attributes=_EXPERIMENT_ATTRIBUTES,
    sortable=_EXPERIMENT_ATTRIBUTES,
    operators={
        STRING: _operators(_TEXT, "'", names=_LIST),
        NUMBER: _operators(_NUMERIC, names=_LIST),
        IDENTIFIER: Operators(
            frozenset(("=", "!=", "IN", "NOT IN")),
            "Invalid comparator for experiment_id: {operator}",
        ),
    },
    list_attributes=("experiment_id",),
    integers_only=True,
    clause="{found}",
    unknown_attribute=_UNKNOWN_ATTRIBUTE,
    not_nullable="IS NULL / IS NOT NULL is only supported for tags, not for attribute '{key}'",
    unsortable="Invalid order_by entity: {label}",
    default_order=(("creation_time", False), ("experiment_id", True)),
    tie_break=(("experiment_id", False),),
)


def valid_keys(names: dict[str, SearchableAttribute] | tuple[str, ...]) -> str:
    """Returns a search's valid attribute names as MLflow's messages do: ``{'a', 'b'}``, sorted."""
    return _as_set(*names)
