"""Messages of MLflow's user API, which are not protobuf: untyped parameters that functions check
one by one, with MLflow's messages.
"""

from __future__ import annotations

import json
from typing import Any, Self

from mlcore import errors
from mlcore.wire.message import Message, fields_of


class Parameters(Message):
    """Base of request messages whose fields may have values of any JSON type, null included."""

    @classmethod
    def of(cls, data: Any) -> Self:
        """Returns the message in a parsed body; an empty one if the body is not an object. Raises
        InvalidParameterValue for texts that are not valid Unicode."""
        sent = data if isinstance(data, dict) else {}
        fields = (field.name for field in fields_of(cls))
        made = {name: sent[name] for name in fields if name in sent}
        try:
            json.dumps(made, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # unpaired surrogates
            raise errors.InvalidParameterValue("A parameter holds no valid text.") from None
        return cls(**made)


def required(message: Message, name: str) -> Any:
    """Returns the value of a required parameter. Raises InvalidParameterValue if the request lacks
    it."""
    if not message.has(name):
        raise errors.InvalidParameterValue(
            f"Missing value for required parameter '{name}'. "
            "See the API docs for more information about request parameters."
        )
    return getattr(message, name)


def text(message: Message, name: str) -> str:
    """Returns the value of a request's required text parameter. Raises InvalidParameterValue if it
    is missing or no text."""
    value = required(message, name)
    if not isinstance(value, str):
        raise errors.InvalidParameterValue(f"Parameter '{name}' must be a string. Got: {value!r}")
    return value


def integer(message: Message, name: str) -> int:
    """Returns the value of a required parameter as an integer, converted by Python's ``int``, which
    also accepts ``"5"`` and cuts ``5.7`` to 5. Raises InvalidParameterValue if it is missing or
    cannot be converted."""
    value = required(message, name)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise errors.InvalidParameterValue(
            f"Parameter '{name}' must be an integer. Got: {value!r}"
        ) from None
