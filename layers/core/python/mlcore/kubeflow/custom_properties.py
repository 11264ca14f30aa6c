"""Kubeflow's custom properties: typed values of an entity that are stored as its tags in MLflow.

A property and a tag with the same key are the same thing. The tag holds the property's text. The
type is stored beside it, together with a copy or hash of that text, the *mark*: if MLflow has
overwritten the tag since, the mark does not match and the property is a string. Keys that begin
with ``mlflow.`` and ``kubeflow.<field>`` keys are reserved and are not custom properties.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from mlcore.kubeflow.errors import invalid
from mlcore.kubeflow.kinds import KINDS
from mlcore.wire.integer_text import parse_integer
from mlcore.wire.json_text import load_json

STRING: Final = "MetadataStringValue"
INT: Final = "MetadataIntValue"
DOUBLE: Final = "MetadataDoubleValue"
BOOL: Final = "MetadataBoolValue"
STRUCT: Final = "MetadataStructValue"

MEMBER: Final = {
    STRING: "string_value",
    INT: "int_value",
    DOUBLE: "double_value",
    BOOL: "bool_value",
    STRUCT: "struct_value",
}
"""The member of a property's JSON object that holds the value, by type."""

TYPE: Final = {member: kind for kind, member in MEMBER.items()}

_INT32_END: Final = 2**31
_FIELD_TAGS: Final = frozenset(
    f"kubeflow.{field.name}" for kind in KINDS.values() for field in kind.fields
)
"""Tags that hold fields of entities. Other tags with this prefix belong to clients, such as the
parent of a nested run."""
_MAX_PLAIN_MARK: Final = 40


class Property(NamedTuple):
    """The typed value of a custom property: a str, int, float, bool, or the JSON text of a
    structure."""

    type: str
    value: Any

    def text(self) -> str:
        """Returns the custom property's value as the text that a tag stores."""
        if self.type == BOOL:
            return "true" if self.value else "false"
        return str(self.value)

    def json(self) -> dict[str, Any]:
        value = self.value
        if self.type == INT:
            value = str(value)
        elif self.type == STRUCT:
            value = base64.b64encode(value.encode()).decode()
        return {"metadataType": self.type, MEMBER[self.type]: value}


Properties = Mapping[str, Property]


def is_reserved(key: str) -> bool:
    """Whether a tag's key is reserved for MLflow or for the fields of Kubeflow's entities."""
    return key.startswith("mlflow.") or key in _FIELD_TAGS


def parse(data: Any) -> dict[str, Property]:
    """Checks the custom properties of a Kubeflow request and returns them. Raises
    InvalidParameterValue."""
    if not isinstance(data, dict):
        raise invalid(
            "json: cannot unmarshal value into Go struct field .customProperties of type map"
        )
    properties = {}
    for key, value in data.items():
        if not key:
            raise invalid("a custom property must have a name")
        if len(key) > 255:
            raise invalid(f"the name of a custom property exceeds 255 characters: {key[:50]}…")
        if is_reserved(key):
            raise invalid(f"custom property '{key}': the name is reserved for {key.split('.')[0]}")
        if value is not None:
            properties[key] = _value(key, value)
    return properties


def _value(key: str, data: Any) -> Property:
    type_name = data.get("metadataType") if isinstance(data, dict) else None
    member = MEMBER.get(type_name) if isinstance(type_name, str) else None
    if member is None:
        raise invalid(f"custom property '{key}': metadataType not found")
    value = data.get(member)
    if type_name == STRING and (value is None or isinstance(value, str)):
        return Property(STRING, value or "")
    if type_name == INT and isinstance(value, str):
        return Property(INT, _int32(key, value))
    if type_name == DOUBLE and isinstance(value, int | float) and not isinstance(value, bool):
        return Property(DOUBLE, _double(key, value))
    if type_name == BOOL and isinstance(value, bool):
        return Property(BOOL, value)
    if type_name == STRUCT and isinstance(value, str):
        return Property(STRUCT, _structure(key, value))
    raise invalid(f"custom property '{key}': invalid {member}")


def _int32(key: str, text: str) -> int:
    number = parse_integer(text, digits=20)
    if number is not None and -_INT32_END <= number < _INT32_END:
        return number
    raise invalid(f"custom property '{key}': invalid int_value: {text}")


def _double(key: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise invalid(f"custom property '{key}': invalid double_value")
    return number


def _structure(key: str, text: str) -> str:
    """Returns the JSON text of a structure, from Base64. Plain JSON is accepted too, because older
    servers of this API return it."""
    for decode in (_decoded, str):
        try:
            json_text = decode(text)
            load_json(json_text)
        except (ValueError, binascii.Error):
            continue
        return json_text
    raise invalid(f"custom property '{key}': invalid struct_value: not Base64 of JSON")


def _decoded(text: str) -> str:
    return base64.b64decode(text, validate=True).decode()


# ------------------------------------------------------------------ as tags


def mark(value: Property) -> str:
    """Returns the mark that is stored beside a tag that holds a custom property of Kubeflow's API,
    such as ``MetadataIntValue 7``: the property's type, and the tag's text or, if it is long, its
    hash. If MLflow's API has changed the tag since, the mark does not fit and is not used."""
    text = value.text()
    if len(text) > _MAX_PLAIN_MARK:
        text = f"~{blake2b(text.encode(), digest_size=12).hexdigest()}"
    return f"{value.type} {text}"


def marks(values: Properties) -> dict[str, str]:
    """Returns, by key, the mark (:func:`mark`) of each of Kubeflow's custom properties that is not
    a string: the text, stored beside the property's tag, that tells its type."""
    return {key: mark(value) for key, value in values.items() if value.type != STRING}


def of_tags(tags: Mapping[str, str], types: Mapping[str, str]) -> dict[str, Property]:
    """Returns the custom properties of Kubeflow's API that an MLflow item's tags hold.

    Args:
        types: by key, the texts that are stored beside tags and tell their types (:func:`mark`).
    """
    return {key: of_tag(text, types.get(key)) for key, text in tags.items() if not is_reserved(key)}


def of_tag(text: str, stored_mark: str | None) -> Property:
    """Returns Kubeflow's custom property that an MLflow tag with this text holds.

    Args:
        stored_mark: the text that is stored beside the tag (:func:`mark`) and tells the property's
            type. Without it, or if it was made for another text, the property is a string.
    """
    if stored_mark is None:
        return Property(STRING, text)
    value = _typed(stored_mark.partition(" ")[0], text)
    if value is None or value.text() != text or mark(value) != stored_mark:
        return Property(STRING, text)
    return value


def _typed(type_name: str, text: str) -> Property | None:
    try:
        if type_name == INT:
            return Property(INT, int(text))
        if type_name == DOUBLE:
            return Property(DOUBLE, float(text))
    except ValueError:
        return None
    if type_name == BOOL:
        return Property(BOOL, text == "true")
    return Property(STRUCT, text) if type_name == STRUCT else None


# ------------------------------------------------------------------ as they are stored elsewhere


def stored(values: Properties) -> dict[str, str]:
    """Returns, by key, each custom property as the text ``<type> <value>``. The items of entities
    that only Kubeflow's registry has store their custom properties in this form."""
    return {key: f"{value.type} {value.text()}" for key, value in values.items()}


def of_stored(texts: Mapping[str, str]) -> dict[str, Property]:
    properties = {}
    for key, text in texts.items():
        type_name, _, value = text.partition(" ")
        properties[key] = _typed(type_name, value) or Property(STRING, value)
    return properties
