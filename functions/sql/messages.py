"""Requests of the SQL route."""

from __future__ import annotations

from typing import Any

from mlcore.wire import Message, boolean, invalid_value, required, string
from mlcore.wire.checks import CheckFailed

FORMATS = ("json", "csv", "arrow")


def parameters(value: Any) -> None:
    """Names and simple values."""
    if value is None:
        return
    if not isinstance(value, dict) or not all(
        one is None or isinstance(one, str | int | float | bool) for one in value.values()
    ):
        raise CheckFailed(invalid_value("parameters", value))


def of_formats(value: Any) -> None:
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
        "format": (string, of_formats),
    }
