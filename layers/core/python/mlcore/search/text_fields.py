"""The fields that the full-text index covers, according to the setting ``fts_fields``.

A field is ``name``, ``tags.<key>``, ``params.<key>`` or ``attributes.<name>``. Names are always
indexed. The setting is a list of further fields; ``tags.*`` and ``params.*`` mean all keys that do
not begin with ``mlflow.``.

Of traces, ``traces.name`` and some whole values are always indexed; ``traces.tags.<key>``,
``traces.metadata.<key>`` and ``traces.content`` (the JSON of spans) if the setting lists them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mlcore import reserved_tags
from mlcore.search.fields import ATTRIBUTE, PARAM, TAG
from mlcore.search.grammar import Comparison
from mlcore.search.text_tokens import RULES_VERSION

SETTING = "fts_fields"
NAME = "name"
DEFAULT = ("tags.*",)
ATTRIBUTES = ("user_id",)
"""Attributes of runs, besides the name, that the setting may list."""
CONTENT = "content"
"""Field of a trace: the JSON of its spans."""
CLIENT_REQUEST, PROMPT, SOURCE_RUN = "client_request_id", "prompt", "run_id"
MODEL, USER = "model_id", "user"
"""Fields of a trace whose values are indexed as whole texts."""

_RESERVED = "mlflow."
_TRACES = "traces."
_WHOLE = (CLIENT_REQUEST, PROMPT, SOURCE_RUN, MODEL, USER)


class IndexedFields:
    """A set of field names, with wildcards, that a full-text index covers or will cover."""

    __slots__ = ("fields",)

    def __init__(self, fields: Iterable[str]) -> None:
        self.fields = frozenset(fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexedFields) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    def covers(self, field: str) -> bool:
        """Returns whether the index covers the field: ``name`` always, any other if the set has it,
        or has a wildcard for it and its key does not begin with ``mlflow.``."""
        if field == NAME or field in self.fields:
            return True
        kind, _, key = field.partition(".")
        return f"{kind}.*" in self.fields and not key.startswith(_RESERVED)

    @property
    def of_traces(self) -> IndexedFields | None:
        """The fields of traces in this set, without the prefix ``traces.``; None if traces are not
        indexed."""
        if _TRACES + NAME not in self.fields:
            return None
        own = [field for field in self.fields if field.startswith(_TRACES)]
        return IndexedFields([*_WHOLE, *(field.removeprefix(_TRACES) for field in own)])

    def encode(self) -> str:
        """Returns this set of fields as JSON, with the version of the rules that make full-text
        tokens, for :func:`decode`."""
        return json.dumps({"rules": RULES_VERSION, "fields": sorted(self.fields)})


def decode(text: str | None) -> IndexedFields | None:
    """Returns which fields a full-text index covers, as :meth:`IndexedFields.encode` stored them.

    Returns None if the index does not exist, or was made by another version of the token rules.
    """
    if text is None:
        return None
    stored = json.loads(text)
    return IndexedFields(stored["fields"]) if stored["rules"] == RULES_VERSION else None


def parse_setting(setting: Any) -> IndexedFields:
    """Returns ``traces.name`` and the fields that a value of the setting ``fts_fields`` lists; with
    the default fields instead if the value is not a list of texts."""
    listed: Iterable[str] = DEFAULT
    if isinstance(setting, list) and all(isinstance(field, str) for field in setting):
        listed = setting
    return IndexedFields([*listed, _TRACES + NAME])


def tag_field(key: str) -> str:
    return NAME if key == reserved_tags.RUN_NAME else f"tags.{key}"


def param_field(key: str) -> str:
    return f"params.{key}"


def attribute_field(name: str) -> str:
    return NAME if name == "run_name" else f"attributes.{name}"


def field_of(comparison: Comparison) -> str | None:
    """Returns the name of the full-text field that a condition on runs tests; None if that field
    cannot be indexed."""
    if comparison.kind == TAG:
        return tag_field(comparison.key)
    if comparison.kind == PARAM:
        return param_field(comparison.key)
    if comparison.kind == ATTRIBUTE and comparison.key in ("run_name", *ATTRIBUTES):
        return attribute_field(comparison.key)
    return None


def has_words(field: str) -> bool:
    """Returns whether the full-text index holds the field's texts word by word; it holds those of
    other fields as whole values."""
    return field in (NAME, CONTENT)


def text_entity_type(entity_type: str) -> str:
    """Returns the entity type under which index keys hold the words and values themselves
    (``run_text``), as opposed to the entities that have them (``run``)."""
    return f"{entity_type}_text"


def key_level(level: str, field: str) -> str:
    """Returns the part of an index key that identifies level and field, so that each field has its
    own posting lists: ``<level>.<field>``, or only the token's level (``word``) for names."""
    return level if field == NAME else f"{level}.{field}"
