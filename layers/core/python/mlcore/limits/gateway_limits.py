"""Checks the setting ``gateway_limits``: how many requests and tokens of the AI gateway an API key,
user, gateway endpoint or workspace may use.
"""

from __future__ import annotations

import json
from typing import Any, Final

from mlcore.entities.gateway_limits import SCOPES, SETTING, CallLimits
from mlcore.errors import InvalidParameterValue

MAX_BYTES: Final = 100_000
_HIGHEST: Final = 10**12
MAX_CONCURRENT_CALLS: Final = 200
"""Maximum of the limit on calls at the same time. One item contains the ids of all open calls; with
200 of them each change costs four write units."""


def check_gateway_limits(value: Any) -> None:
    """Checks that the value of the setting ``gateway_limits`` has the form ``{scope: {name: {limit:
    number}}}``. Raises InvalidParameterValue otherwise."""
    if not isinstance(value, dict) or not value.keys() <= set(SCOPES):
        raise InvalidParameterValue(
            f"The setting {SETTING!r} must be an object with some of {', '.join(SCOPES)}."
        )
    for scope, entries in value.items():
        if not isinstance(entries, dict):
            raise InvalidParameterValue(
                f"The setting {SETTING!r} must have an object of names as {scope!r}."
            )
        for name, limits in entries.items():
            _check_limits(scope, name, limits)
    if len(json.dumps(value, ensure_ascii=False).encode()) > MAX_BYTES:
        raise InvalidParameterValue(f"The setting {SETTING!r} can have at most {MAX_BYTES} bytes.")


def _check_limits(scope: str, name: str, limits: Any) -> None:
    fields = CallLimits._fields
    if not name or not isinstance(limits, dict) or not limits or not limits.keys() <= set(fields):
        raise InvalidParameterValue(
            f"The limits of {name!r} in {scope!r} must be an object with some of "
            f"{', '.join(fields)}."
        )
    for field, number in limits.items():
        highest = MAX_CONCURRENT_CALLS if field == "concurrent_calls" else _HIGHEST
        if type(number) is not int or not 1 <= number <= highest:
            raise InvalidParameterValue(
                f"{field!r} of {name!r} in {scope!r} must be a whole number from 1 to {highest}."
            )
