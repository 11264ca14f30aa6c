"""Protobuf-JSON, the format of MLflow's REST API: decodes requests and encodes responses."""

from mlcore.wire.checks import (
    Check,
    CheckFailed,
    array,
    at_most,
    boolean,
    fields_present,
    floatlike,
    intlike,
    invalid_value,
    item_type_string,
    length_at_most,
    required,
    string,
    within,
)
from mlcore.wire.encoding import encode
from mlcore.wire.message import Message
from mlcore.wire.scalars import ArgumentInt, Int32, enum

__all__ = [
    "ArgumentInt",
    "Check",
    "CheckFailed",
    "Int32",
    "Message",
    "array",
    "at_most",
    "boolean",
    "encode",
    "enum",
    "fields_present",
    "floatlike",
    "intlike",
    "invalid_value",
    "item_type_string",
    "length_at_most",
    "required",
    "string",
    "within",
]
