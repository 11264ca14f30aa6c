"""Reading parameters that MLflow checks one by one, with its messages."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.wire.message import Message


def given(message: Message, name: str) -> Any:
    """A parameter that must be there. Raises InvalidParameterValue."""
    if not message.has(name):
        raise errors.InvalidParameterValue(
            f"Missing value for required parameter '{name}'. "
            "See the API docs for more information about request parameters."
        )
    return getattr(message, name)


def text(message: Message, name: str) -> str:
    """A parameter that must be there and be a text. Raises InvalidParameterValue."""
    value = given(message, name)
    if not isinstance(value, str):
        raise errors.InvalidParameterValue(f"Parameter '{name}' must be a string. Got: {value!r}")
    return value


def integer(message: Message, name: str) -> int:
    """A parameter that must be there and be a whole number. Raises InvalidParameterValue."""
    value = given(message, name)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise errors.InvalidParameterValue(
            f"Parameter '{name}' must be an integer. Got: {value!r}"
        ) from None
