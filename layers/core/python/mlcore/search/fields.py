"""What can be searched in each entity; owns names, types, operators and refusals as data, never any
behaviour.

Another entity of MLflow (traces, logged models, registered models and versions) is another
:class:`Entity` here. The texts are MLflow's: clients show them to people. ``{operator}``,
``{key}``, ``{label}``, ``{found}`` are filled in.
"""

from __future__ import annotations

from typing import NamedTuple

METRIC = "metric"
PARAM = "param"
TAG = "tag"
ATTRIBUTE = "attribute"
DATASET = "dataset"

NUMBER = "number"
STRING = "string"
IDENTIFIER = "identifier"
"""A text that MLflow stores as a number: only equality and lists make sense for it."""

RUN_NAME_TAG = "mlflow.runName"
DATASET_CONTEXT_TAG = "mlflow.data.context"


def _set(*words: str) -> str:
    """A Python set as MLflow prints it, in a stable order."""
    return "{" + ", ".join(repr(word) for word in sorted(words)) + "}"


class Operators(NamedTuple):
    """The operators of one type of field and the refusal of any other."""

    allowed: frozenset[str]
    refusal: str


class Attribute(NamedTuple):
    """One attribute: the entity's field ``name``; a filter reads the tag ``tag`` instead if set."""

    name: str
    type: str
    tag: str = ""


class Kind(NamedTuple):
    """One family of fields (``metrics.…``); ``label`` is its name in MLflow's refusals."""

    name: str
    label: str
    type: str
    operators: Operators
    expects: str
    keys: tuple[str, ...] = ()
    """The only valid keys; empty: any key."""
    unknown_key: str = ""
    lists: bool = False
    nullable: bool = False
    sortable: bool = True


class Entity(NamedTuple):
    """Everything the grammar and the matcher must know of one entity."""

    name: str
    kinds: dict[str, Kind]
    """By every word that may stand before the first dot."""
    quoted_kinds: bool
    """That word may be in backticks."""
    unknown_kind: str
    attributes: dict[str, Attribute]
    """By every name and alias that a filter may use."""
    sortable: dict[str, Attribute]
    operators: dict[str, Operators]
    """Of the attributes, by type."""
    list_attributes: tuple[str, ...]
    fold_operators: bool
    """``like`` is ``LIKE``."""
    integers_only: bool
    clause: str
    """How a token that does not belong is shown."""
    unknown_attribute: str
    not_nullable: str
    unsortable: str
    default_order: tuple[tuple[str, bool], ...]
    tie_break: tuple[tuple[str, bool], ...]
    """(attribute, ascending) appended to an explicit order, unless it is there."""
    quoted_numbers: bool = False
    """A number may be in quotes."""
    numbers_for: tuple[str, ...] = ()
    """What MLflow says that numbers are for, when one is compared with a text."""
    words: tuple[str, ...] = ()
    """Words of SQL that are names here."""


_NUMERIC = frozenset(("<", "<=", "=", "!=", ">=", ">"))
_TEXT = frozenset(("=", "!=", "LIKE", "ILIKE"))
_LIST = _TEXT | {"IN", "NOT IN"}
_NULLABLE = _TEXT | {"IS NULL", "IS NOT NULL"}

# Some of MLflow's texts lack the closing quote.
_NOT_ONE_OF = "Invalid comparator '{{operator}}' not one of '{0}"
_UNKNOWN_ATTRIBUTE = "Invalid attribute key '{key}' specified. Valid keys are '{valid}'"
_EXPECTS_NUMBER = "Expected numeric value type for metric. Found {found}"
_EXPECTS_STRING = "Expected a quoted string value for {label} (e.g. 'my-value'). Got value {found}"


def _operators(
    allowed: frozenset[str], quote: str = "", names: frozenset[str] | None = None
) -> Operators:
    return Operators(
        allowed,
        _NOT_ONE_OF.format(_set(*(names or allowed)).replace("{", "{{").replace("}", "}}")) + quote,
    )


_RUN_METRIC = Kind(METRIC, "metric", NUMBER, _operators(_NUMERIC), _EXPECTS_NUMBER)
_RUN_PARAM = Kind(
    PARAM, "parameter", STRING, _operators(_NULLABLE, "'"), _EXPECTS_STRING, nullable=True
)
_RUN_TAG = Kind(TAG, "tag", STRING, _operators(_NULLABLE), _EXPECTS_STRING, nullable=True)
_DATASET_KEYS = ("context", "digest", "name")
_RUN_DATASET = Kind(
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
# The operators of an attribute depend on its type: see Entity.operators.
_ATTRIBUTE = Kind(
    ATTRIBUTE,
    "attribute",
    STRING,
    Operators(frozenset(), ""),
    "Expected a quoted string value for attributes. Got value {found}",
)

_START_TIME = Attribute("start_time", NUMBER)
_RUN_NAME = Attribute("run_name", STRING, tag=RUN_NAME_TAG)
_RUN_ORDERABLE = {
    "artifact_uri": Attribute("artifact_uri", STRING),
    "end_time": Attribute("end_time", NUMBER),
    "run_id": Attribute("run_id", STRING),
    "run_name": _RUN_NAME,
    "start_time": _START_TIME,
    "status": Attribute("status", STRING),
    "user_id": Attribute("user_id", STRING),
    "created": _START_TIME,
    "Created": _START_TIME,
}

RUN = Entity(
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
    fold_operators=True,
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
    "creation_time": Attribute("creation_time", NUMBER),
    "experiment_id": Attribute("experiment_id", IDENTIFIER),
    "last_update_time": Attribute("last_update_time", NUMBER),
    "name": Attribute("name", STRING),
}
_EXPERIMENT_TAG = Kind(
    TAG,
    "tag",
    STRING,
    Operators(_NULLABLE, "Invalid comparator for tag: {operator}"),
    _EXPECTS_STRING,
    nullable=True,
    sortable=False,
)

EXPERIMENT = Entity(
    name="experiment",
    kinds={"attribute": _ATTRIBUTE, "tag": _EXPERIMENT_TAG, "tags": _EXPERIMENT_TAG},
    quoted_kinds=False,
    unknown_kind=(
        "Invalid entity type '{found}'. Valid entity types are ('attribute', 'tag', 'tags')"
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
    fold_operators=False,
    integers_only=True,
    clause="{found}",
    unknown_attribute=_UNKNOWN_ATTRIBUTE,
    not_nullable="IS NULL / IS NOT NULL is only supported for tags, not for attribute '{key}'",
    unsortable="Invalid order_by entity: {label}",
    default_order=(("creation_time", False), ("experiment_id", True)),
    tie_break=(("experiment_id", False),),
)


def valid_keys(names: dict[str, Attribute] | tuple[str, ...]) -> str:
    """The set of names as MLflow's refusals print it."""
    return _set(*names)
