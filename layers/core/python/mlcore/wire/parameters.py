"""Requests of MLflow's accounts, which are no protobuf messages: parameters that are kept as they
come and checked one by one, with MLflow's messages."""

from __future__ import annotations

import json
from typing import Any, Self

from mlcore import errors
from mlcore.wire.message import Message, fields_of


class Parameters(Message):
    """A message whose values are anything, null among it; what is no JSON object has none."""

    @classmethod
    def of(cls, data: Any) -> Self:
        """The parameters in what a body holds. Raises InvalidParameterValue for texts that no
        store can keep."""
        sent = data if isinstance(data, dict) else {}
        fields = (field.name for field in fields_of(cls))
        made = {name: sent[name] for name in fields if name in sent}
        try:
            json.dumps(made, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # unpaired surrogates
            raise errors.InvalidParameterValue("A parameter holds no valid text.") from None
        return cls(**made)


def required(message: Message, name: str) -> Any:
    """A parameter that must be there. Raises InvalidParameterValue."""
    if not message.has(name):
        raise errors.InvalidParameterValue(
            f"Missing value for required parameter '{name}'. "
            "See the API docs for more information about request parameters."
        )
    return getattr(message, name)


def text(message: Message, name: str) -> str:
    """A parameter that must be there and be a text. Raises InvalidParameterValue."""
    value = required(message, name)
    if not isinstance(value, str):
        raise errors.InvalidParameterValue(f"Parameter '{name}' must be a string. Got: {value!r}")
    return value


def integer(message: Message, name: str) -> int:
    """A parameter that must be there and be a whole number. Raises InvalidParameterValue."""
    value = required(message, name)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise errors.InvalidParameterValue(
            f"Parameter '{name}' must be an integer. Got: {value!r}"
        ) from None
