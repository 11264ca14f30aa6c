"""Custom properties: values with a type of their own, and the tags of MLflow that they are.

A property and a tag of one key are one thing. A tag holds the property's text; the type is kept
beside it, together with a mark of that text, so that a tag which MLflow has written since is a
string. Keys that begin with ``mlflow.``, and ``kubeflow.<field>``, are the systems' own: no custom
property.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from mlcore.kubeflow.errors import bad
from mlcore.kubeflow.kinds import KINDS

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
"""Where a value of a type is in its JSON object."""

TYPE: Final = {member: kind for kind, member in MEMBER.items()}

_MOST_INT: Final = 2**31
_OWN: Final = frozenset(
    f"kubeflow.{field.name}" for kind in KINDS.values() for field in kind.fields
)
"""Tags that carry fields; what else begins so is the client's, such as a nested run's parent."""
_SHORT: Final = 40


class Property(NamedTuple):
    """A typed value: a str, an int, a float, a bool, or the JSON text of a structure."""

    type: str
    value: Any

    def text(self) -> str:
        """As a tag shows it."""
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
    """Whether a tag is the systems' own."""
    return key.startswith("mlflow.") or key in _OWN


def parse(data: Any) -> dict[str, Property]:
    """The properties of a request. Raises InvalidParameterValue."""
    if not isinstance(data, dict):
        raise bad("json: cannot unmarshal value into Go struct field .customProperties of type map")
    found = {}
    for key, value in data.items():
        if not key:
            raise bad("a custom property needs a name")
        if len(key) > 255:
            raise bad(f"the name of a custom property exceeds 255 characters: {key[:50]}…")
        if is_reserved(key):
            raise bad(f"custom property '{key}': the name is one of {key.split('.')[0]}'s own")
        if value is not None:
            found[key] = _value(key, value)
    return found


def _value(key: str, data: Any) -> Property:
    kind = data.get("metadataType") if isinstance(data, dict) else None
    member = MEMBER.get(kind) if isinstance(kind, str) else None
    if member is None:
        raise bad(f"custom property '{key}': metadataType not found")
    value = data.get(member)
    if kind == STRING and (value is None or isinstance(value, str)):
        return Property(STRING, value or "")
    if kind == INT and isinstance(value, str):
        return Property(INT, _int32(key, value))
    if kind == DOUBLE and isinstance(value, int | float) and not isinstance(value, bool):
        return Property(DOUBLE, _double(key, value))
    if kind == BOOL and isinstance(value, bool):
        return Property(BOOL, value)
    if kind == STRUCT and isinstance(value, str):
        return Property(STRUCT, _structure(key, value))
    raise bad(f"custom property '{key}': invalid {member}")


def _int32(key: str, text: str) -> int:
    digits = text.removeprefix("-").removeprefix("+")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 20:
        number = int(text)
        if -_MOST_INT <= number < _MOST_INT:
            return number
    raise bad(f"custom property '{key}': invalid int_value: {text}")


def _double(key: str, value: float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise bad(f"custom property '{key}': invalid double_value")
    return number


def _structure(key: str, text: str) -> str:
    """Base64 of JSON; plain JSON too, because older servers gave it out so."""
    for read in (_decoded, str):
        try:
            plain = read(text)
            json.loads(plain)
        except (ValueError, RecursionError, binascii.Error):
            continue
        return plain
    raise bad(f"custom property '{key}': invalid struct_value: no Base64 of JSON")


def _decoded(text: str) -> str:
    return base64.b64decode(text, validate=True).decode()


# ------------------------------------------------------------------ as tags


def mark(value: Property) -> str:
    """What is kept beside a tag: the type, and which text it is the type of."""
    text = value.text()
    if len(text) > _SHORT:
        text = f"~{blake2b(text.encode(), digest_size=12).hexdigest()}"
    return f"{value.type} {text}"


def marks(values: Properties) -> dict[str, str]:
    """The marks of all that are no strings."""
    return {key: mark(value) for key, value in values.items() if value.type != STRING}


def of_tags(tags: Mapping[str, str], types: Mapping[str, str]) -> dict[str, Property]:
    """The custom properties that tags are."""
    return {key: of_tag(text, types.get(key)) for key, text in tags.items() if not is_reserved(key)}


def of_tag(text: str, kept: str | None) -> Property:
    if kept is None:
        return Property(STRING, text)
    value = _typed(kept.partition(" ")[0], text)
    return value if value is not None and mark(value) == kept else Property(STRING, text)


def _typed(kind: str, text: str) -> Property | None:
    try:
        if kind == INT:
            return Property(INT, int(text))
        if kind == DOUBLE:
            return Property(DOUBLE, float(text))
    except ValueError:
        return None
    if kind == BOOL:
        return Property(BOOL, text == "true")
    return Property(STRUCT, text) if kind == STRUCT else None


# ------------------------------------------------------------------ as they are stored elsewhere


def stored(values: Properties) -> dict[str, str]:
    """For items that are Kubeflow's alone."""
    return {key: f"{value.type} {value.text()}" for key, value in values.items()}


def of_stored(texts: Mapping[str, str]) -> dict[str, Property]:
    found = {}
    for key, text in texts.items():
        kind, _, value = text.partition(" ")
        found[key] = _typed(kind, value) or Property(STRING, value)
    return found
