"""The request of the SQL route, and its checks."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Message, boolean, invalid_value, required, string
from mlcore.wire.checks import CheckFailed

FORMATS = ("json", "csv", "arrow")


def parameters(value: Any) -> None:
    """Checks that the parameters are an object of texts, numbers, booleans and nulls."""
    if value is None:
        return
    if not isinstance(value, dict) or not all(
        item is None or isinstance(item, str | int | float | bool) for item in value.values()
    ):
        raise CheckFailed(invalid_value("parameters", value))


def known_format(value: Any) -> None:
    if value not in (None, *FORMATS):
        raise CheckFailed(invalid_value("format", value, f" Formats: {', '.join(FORMATS)}."))


class Query(Message):
    sql: str
    parameters: Any
    fresh: bool
    format: str
    checks = {
        "sql": (required, string),
        "parameters": (parameters,),
        "fresh": (boolean,),
        "format": (string, known_format),
    }
