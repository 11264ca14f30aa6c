"""Checks the JSON body of a request to Kubeflow's APIs: the fields that it may have, and the values
that each may hold.

Field names match as in Go: exactly, or else case-insensitively. A null field counts as missing.
"""

from __future__ import annotations

import math
from typing import Any, Final

from mlcore.kubeflow import custom_properties, kinds
from mlcore.kubeflow.errors import RequiredFieldMissing, invalid
from mlcore.kubeflow.kinds import ARTIFACTS, EntityKind, KindField
from mlcore.wire.integer_text import parse_integer
from mlcore.wire.json_text import load_json

CREATE: Final = "Create"
UPDATE: Final = "Update"
UPSERT: Final = ""
"""An entity that is updated if the body has an ``id``, and created otherwise."""

MAX_LENGTH: Final = 255
_INT64_END: Final = 2**63
_COMMON_FIELDS: Final = ("description", "externalId", "customProperties")
_SERVER_FIELDS: Final = ("id", "createTimeSinceEpoch", "lastUpdateTimeSinceEpoch")

Values = dict[str, Any]
"""Field values by name: str, float, int, list of str, or properties (``customProperties``)."""


def parse(raw: bytes) -> dict[str, Any]:
    """Parses a request's body to a JSON object. Raises InvalidParameterValue if it is not one."""
    if not raw.strip():
        raise invalid("EOF")
    try:
        text = raw.decode()
        data = load_json(text, parse_constant=_no_constant)
    except ValueError as error:
        raise invalid(f"invalid JSON: {error}") from None
    if not isinstance(data, dict):
        raise invalid("json: cannot unmarshal value into Go value of type object")
    check_text(data)
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(f"invalid character in literal {name}")


def check_text(data: Any) -> None:
    """Checks all texts in parsed JSON, keys included, for characters that cannot be stored. Raises
    InvalidParameterValue for a NUL or a lone surrogate."""
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise invalid("invalid text: not UTF-8") from None
        if isinstance(value, str) and "\0" in value:
            raise invalid("null bytes are not allowed")


def values_of(kind: EntityKind, data: dict[str, Any], use: str) -> Values:
    """Returns the checked and converted fields of the Kubeflow entity in a request's body.

    Args:
        use: ``CREATE``, ``UPDATE`` or ``UPSERT``; it decides which fields are allowed.

    Raises:
        InvalidParameterValue: a field is unknown or holds an invalid value, or an artifact lacks a
            required field. (Unknown fields of artifacts are ignored.)
        RequiredFieldMissing: a required field of another entity is missing or empty.
    """
    is_artifact = bool(kind.artifact_type)
    title = f"{kind.title}{use}"
    allowed: dict[str, KindField] = {name: KindField(name) for name in _COMMON_FIELDS}
    if use != UPDATE:
        allowed["name"] = KindField("name")
    if use == UPSERT:
        allowed |= {name: KindField(name) for name in _SERVER_FIELDS}
        allowed["id"] = KindField("id", kinds.REFERENCE)
    if is_artifact:
        allowed["artifactType"] = KindField("artifactType")
    allowed |= {field.name: field for field in kind.fields if use != UPDATE or not field.fixed}
    folded = {name.lower(): name for name in allowed}
    values: Values = {}
    for key, value in data.items():
        name = key if key in allowed else folded.get(key.lower())
        if name is None:
            if is_artifact:
                continue
            raise invalid(f'json: unknown field "{key}"')
        if value is not None:
            values[name] = _value(title, allowed[name], value)
    if use != UPDATE:
        _check_required(kind, values)
    _check_lengths(values)
    return values


def artifact_kind(data: dict[str, Any]) -> EntityKind:
    """Returns the kind of Kubeflow artifact that ``artifactType`` in a request's body names. Of
    several spellings of the key the last one that is not null is used, as in :func:`values_of`.
    Raises InvalidParameterValue for an unknown or missing type."""
    artifact_type = None
    for key, value in data.items():
        if key.lower() == "artifacttype" and value is not None:
            artifact_type = value
    kind = ARTIFACTS.get(artifact_type) if isinstance(artifact_type, str) else None
    if kind is None:
        raise invalid(f"unknown type for Artifact: invalid artifactType '{artifact_type}'")
    return kind


def defaults(kind: EntityKind) -> Values:
    return {field.name: field.default for field in kind.fields if field.default is not None}


def _check_required(kind: EntityKind, values: Values) -> None:
    required_names = ["name"] if kind.named else []
    required_names += [field.name for field in kind.fields if field.required]
    for name in required_names:
        if values.get(name) in (None, ""):
            if kind.artifact_type:
                raise invalid(f"required field '{name}' is zero value.")
            raise RequiredFieldMissing(name)


def _check_lengths(values: Values) -> None:
    for name in ("name", "externalId"):
        if len(values.get(name, "")) > MAX_LENGTH:
            raise invalid(f"{name} exceeds the maximum length of {MAX_LENGTH} characters")


def _value(title: str, field: KindField, value: Any) -> Any:
    if field.name == "customProperties":
        return custom_properties.parse(value)
    if field.values:
        if value not in field.values:
            raise invalid(f"{value} is not a valid {field.type}")
        return value
    field_type = field.type
    if field_type == kinds.TEXTS:
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
    elif field_type == kinds.DOUBLE:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _double(field.name, value)
    elif field_type == kinds.INT64:
        return _int64(field.name, value)
    elif isinstance(value, str):
        if field_type == kinds.TIME:
            return str(_int64(field.name, value))
        if field_type == kinds.REFERENCE and value:
            return str(number(value, field.name))
        return value
    raise invalid(
        f"json: cannot unmarshal {_go_type(value)} into Go struct field "
        f"{title}.{field.name} of type {'[]string' if field_type == kinds.TEXTS else field_type}"
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
        raise invalid(f"{name}: the number is too large") from None


def _int64(name: str, value: Any) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 19):
            raise invalid(f"{name}: invalid number: {value[:50]}")
        value = int(value)
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid(f"{name}: invalid number")
    if not -_INT64_END <= value < _INT64_END:
        raise invalid(f"{name}: the number is not an int64")
    return value


def number(text: str, label: str = "") -> int:
    """Returns a Kubeflow id, given as text, as a number. Raises InvalidParameterValue if the text
    is not an int32.

    Args:
        label: describes the id, for the message.
    """
    value = parse_integer(text, digits=19)
    if value is not None and -(2**31) <= value < 2**31:
        return value
    raise invalid(
        f"invalid {label} ID: {text[:50]}"
        if " " in label or not label
        else f"invalid {label}: {text[:50]}"
    )
