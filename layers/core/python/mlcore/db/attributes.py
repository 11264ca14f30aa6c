"""PynamoDB attributes that keep what they are given: exact integers, doubles, bytes and maps of
texts."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from math import inf, isnan
from typing import Any

from pynamodb.attributes import Attribute
from pynamodb.constants import BINARY, MAP, NUMBER, STRING


class IntAttribute(Attribute[int]):
    """An integer of at most 38 digits. (``NumberAttribute`` is one of floats.)"""

    attr_type = NUMBER

    def serialize(self, value: int) -> str:
        return str(value)

    def deserialize(self, value: str) -> int:
        return int(value)


class DoubleAttribute(Attribute[float]):
    """A double as text, because DynamoDB's numbers have no NaN, no infinity and no 1e300."""

    attr_type = STRING

    def serialize(self, value: float) -> str:
        if isnan(value):
            return "NaN"
        if value in {inf, -inf}:
            return "Infinity" if value > 0 else "-Infinity"
        return repr(float(value))

    def deserialize(self, value: str) -> float:
        return float(value)


class TextMapAttribute(Attribute[dict[str, str]]):
    """A map from any text to text."""

    attr_type = MAP

    def serialize(self, value: Mapping[str, str]) -> dict[str, Any]:
        return {key: {STRING: text} for key, text in value.items()}

    def deserialize(self, value: dict[str, Any]) -> dict[str, str]:
        return {key: text[STRING] for key, text in value.items()}


class BytesAttribute(Attribute[bytes]):
    """Bytes: botocore takes them as they are."""

    attr_type = BINARY

    def serialize(self, value: bytes) -> bytes:
        return value

    def deserialize(self, value: bytes | str) -> bytes:
        return bytes_of({BINARY: value})


def bytes_of(raw: dict[str, Any]) -> bytes:
    """The bytes of a raw attribute, which in an answer of DynamoDB are Base64 text."""
    value = raw[BINARY]
    return base64.b64decode(value) if isinstance(value, str) else bytes(value)


def integer_of(item: Mapping[str, Any], attribute: str) -> int | None:
    """A number of a raw item; None if it is not there."""
    return int(item[attribute]["N"]) if attribute in item else None


def text_of(item: Mapping[str, Any], attribute: str) -> str | None:
    """A text of a raw item; None if it is not there."""
    return item[attribute]["S"] if attribute in item else None
