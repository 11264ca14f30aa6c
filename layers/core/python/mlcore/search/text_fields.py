"""Which texts of an entity a full-text index holds: names of fields and sets of them; owns no token
and no item.

A field is ``name``, ``tags.<key>``, ``params.<key>`` or ``attributes.<name>``. Names are always
indexed. What else is follows from the setting ``fts_fields``: a list of fields, in which ``tags.*``
and ``params.*`` stand for all keys that do not begin with ``mlflow.``.

Fields of traces are ``traces.name`` and some whole values, always, and, if the setting has them,
``traces.tags.<key>``, ``traces.metadata.<key>`` and ``traces.content``, the JSON of spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mlcore.search.fields import ATTRIBUTE, PARAM, RUN_NAME_TAG, TAG
from mlcore.search.grammar import Comparison
from mlcore.search.text import RULES

SETTING = "fts_fields"
NAME = "name"
DEFAULT = ("tags.*",)
ATTRIBUTES = ("user_id",)
"""Attributes of runs, besides the name, that may be asked for."""
CONTENT = "content"
"""What the spans of a trace hold."""
CLIENT_REQUEST, PROMPT, SOURCE_RUN = "client_request_id", "prompt", "run_id"
MODEL, USER = "model_id", "user"
"""Fields of a trace whose values are indexed as they are, as words."""

_RESERVED = "mlflow."
_TRACES = "traces."
_WHOLE = (CLIENT_REQUEST, PROMPT, SOURCE_RUN, MODEL, USER)


class Indexed:
    """The fields that an index holds completely, or is to hold."""

    __slots__ = ("fields",)

    def __init__(self, fields: Iterable[str]) -> None:
        self.fields = frozenset(fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Indexed) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    def covers(self, field: str) -> bool:
        if field == NAME or field in self.fields:
            return True
        kind, _, key = field.partition(".")
        return f"{kind}.*" in self.fields and not key.startswith(_RESERVED)

    @property
    def of_traces(self) -> Indexed | None:
        """The fields of traces, by their names in items; None if traces are not indexed."""
        if _TRACES + NAME not in self.fields:
            return None
        own = [field for field in self.fields if field.startswith(_TRACES)]
        return Indexed([*_WHOLE, *(field.removeprefix(_TRACES) for field in own)])

    def encode(self) -> str:
        """With the number of the rules that tokens are made by."""
        return json.dumps({"rules": RULES, "fields": sorted(self.fields)})


def decode(text: str | None) -> Indexed | None:
    """The fields of an index; None if there is none, or one that was made by other rules."""
    if text is None:
        return None
    found = json.loads(text)
    return Indexed(found["fields"]) if found["rules"] == RULES else None


def wanted(setting: Any) -> Indexed:
    """What a value of the setting asks for; the default for anything but a list of texts."""
    asked: Iterable[str] = DEFAULT
    if isinstance(setting, list) and all(isinstance(field, str) for field in setting):
        asked = setting
    return Indexed([*asked, _TRACES + NAME])


def tag_field(key: str) -> str:
    return NAME if key == RUN_NAME_TAG else f"tags.{key}"


def param_field(key: str) -> str:
    return f"params.{key}"


def attribute_field(name: str) -> str:
    return NAME if name == "run_name" else f"attributes.{name}"


def field_of(comparison: Comparison) -> str | None:
    """The text of a run that a condition is about."""
    if comparison.kind == TAG:
        return tag_field(comparison.key)
    if comparison.kind == PARAM:
        return param_field(comparison.key)
    if comparison.kind == ATTRIBUTE and comparison.key in ("run_name", *ATTRIBUTES):
        return attribute_field(comparison.key)
    return None


def has_words(field: str) -> bool:
    """Whether a text is held by its words; others are held as they are."""
    return field in (NAME, CONTENT)


def texts_of(entity_type: str) -> str:
    """The type that the words and values of entities of a type have in the index."""
    return f"{entity_type}_text"


def level_of(level: str, field: str) -> str:
    """The level of a token in the keys of an index: that of a name is the token's own, that of
    another text names its field as well, so that no field lengthens the lists of another."""
    return level if field == NAME else f"{level}.{field}"
