"""The JSON body of a request: which fields it may have, and what each may hold.

Fields are matched as Go does it, exactly or else without regard to case; null is as absent.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from mlcore.kubeflow import kinds, properties
from mlcore.kubeflow.errors import RequiredFieldMissing, bad
from mlcore.kubeflow.kinds import ARTIFACTS, Field, Kind

CREATE: Final = "Create"
UPDATE: Final = "Update"
WHOLE: Final = ""
"""An entity that is updated where it has an id, and made where it has none."""

MAX_LENGTH: Final = 255
_MOST_INT64: Final = 2**63
_OF_ALL: Final = ("description", "externalId", "customProperties")
_GIVEN_BY_SERVER: Final = ("id", "createTimeSinceEpoch", "lastUpdateTimeSinceEpoch")

Values = dict[str, Any]
"""By field: str, float, int, list of str, or (``customProperties``) properties."""


def parse(raw: bytes) -> dict[str, Any]:
    """The object that a body holds. Raises InvalidParameterValue."""
    if not raw.strip():
        raise bad("EOF")
    try:
        text = raw.decode()
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise bad(f"invalid JSON: {error}") from None
    if not isinstance(data, dict):
        raise bad("json: cannot unmarshal value into Go value of type object")
    check_text(data)
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"invalid character in literal {name}")


def check_text(data: Any) -> None:
    """Raises InvalidParameterValue: a text holds NUL, or half of a character."""
    waiting = [data]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, str) and not one.isascii():
            try:
                one.encode()
            except UnicodeEncodeError:
                raise bad("invalid text: not UTF-8") from None
        if isinstance(one, str) and "\0" in one:
            raise bad("null bytes are not allowed")


def values_of(kind: Kind, data: dict[str, Any], use: str) -> Values:
    """The fields of an entity in a body, checked and converted.

    Raises:
        InvalidParameterValue: a field is unknown or holds what it may not.
        RequiredFieldMissing: one that is needed is not there or empty.
    """
    artifact = bool(kind.artifact_type)
    title = f"{kind.title}{use}"
    allowed: dict[str, Field] = {name: Field(name) for name in _OF_ALL}
    if use != UPDATE:
        allowed["name"] = Field("name")
    if use == WHOLE:
        allowed |= {name: Field(name) for name in _GIVEN_BY_SERVER}
        allowed["id"] = Field("id", kinds.REFERENCE)
    if artifact:
        allowed["artifactType"] = Field("artifactType")
    allowed |= {field.name: field for field in kind.fields if use != UPDATE or not field.fixed}
    folded = {name.lower(): name for name in allowed}
    found: Values = {}
    for key, value in data.items():
        name = key if key in allowed else folded.get(key.lower())
        if name is None:
            if artifact:
                continue
            raise bad(f'json: unknown field "{key}"')
        if value is not None:
            found[name] = _value(title, allowed[name], value)
    if use != UPDATE:
        _check_required(kind, found)
    _check_lengths(found)
    return found


def artifact_kind(data: dict[str, Any]) -> Kind:
    """The kind that a body of an artifact of any type names: by the last key that means it and is
    not null, as :func:`values_of` reads it. Raises InvalidParameterValue."""
    named = None
    for key, value in data.items():
        if key.lower() == "artifacttype" and value is not None:
            named = value
    kind = ARTIFACTS.get(named) if isinstance(named, str) else None
    if kind is None:
        raise bad(f"unknown type for Artifact: invalid artifactType '{named}'")
    return kind


def defaults(kind: Kind) -> Values:
    return {field.name: field.default for field in kind.fields if field.default is not None}


def _check_required(kind: Kind, found: Values) -> None:
    needed = ["name"] if kind.named else []
    needed += [field.name for field in kind.fields if field.required]
    for name in needed:
        if found.get(name) in (None, ""):
            if kind.artifact_type:
                raise bad(f"required field '{name}' is zero value.")
            raise RequiredFieldMissing(name)


def _check_lengths(found: Values) -> None:
    for name in ("name", "externalId"):
        if len(found.get(name, "")) > MAX_LENGTH:
            raise bad(f"{name} exceeds the maximum length of {MAX_LENGTH} characters")


def _value(title: str, field: Field, value: Any) -> Any:
    if field.name == "customProperties":
        return properties.parse(value)
    if field.values:
        if value not in field.values:
            raise bad(f"{value} is not a valid {field.type}")
        return value
    kind = field.type
    if kind == kinds.TEXTS:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return value
    elif kind == kinds.DOUBLE:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _double(field.name, value)
    elif kind == kinds.INT64:
        return _int64(field.name, value)
    elif isinstance(value, str):
        if kind == kinds.TIME:
            return str(_int64(field.name, value))
        if kind == kinds.REFERENCE and value:
            return str(number(value, field.name))
        return value
    raise bad(
        f"json: cannot unmarshal {_go_type(value)} into Go struct field "
        f"{title}.{field.name} of type {'[]string' if kind == kinds.TEXTS else kind}"
    )


def _go_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, list):
        return "array"
    return "object" if isinstance(value, dict) else "number"


def _double(name: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise bad(f"{name}: the number is too large") from None


def _int64(name: str, value: Any) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 19):
            raise bad(f"{name}: invalid number: {value[:50]}")
        value = int(value)
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise bad(f"{name}: invalid number")
    if not -_MOST_INT64 <= value < _MOST_INT64:
        raise bad(f"{name}: the number is no int64")
    return value


def number(text: str, words: str = "") -> int:
    """The number that an id is. Raises InvalidParameterValue: it is no int32."""
    digits = text.removeprefix("-").removeprefix("+")
    if digits.isascii() and digits.isdecimal() and len(digits) <= 19:
        found = int(text)
        if -(2**31) <= found < 2**31:
            return found
    raise bad(
        f"invalid {words} ID: {text[:50]}"
        if " " in words or not words
        else f"invalid {words}: {text[:50]}"
    )
