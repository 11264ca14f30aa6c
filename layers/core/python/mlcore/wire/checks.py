"""Checks of raw request values, with the messages of MLflow's server. A check takes a value and
raises :class:`CheckFailed`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from mlcore.errors import InvalidParameterValue

SEE_DOCS: Final = " See the API docs for more information about request parameters."

Check = Callable[[Any], None]
"""Checks the raw JSON value of a parameter; raises CheckFailed or, for a value of a wrong type,
TypeError, ValueError, AttributeError or OverflowError."""


class CheckFailed(Exception):
    """Raised by a check for a value that does not pass it. ``text`` is the error message; None for
    MLflow's general message about an invalid value."""

    def __init__(self, text: str | None = None) -> None:
        super().__init__(text)
        self.text = text


def required(value: Any) -> None:
    if value is None or value == "":
        raise CheckFailed


def string(value: Any) -> None:
    _expect(isinstance(value, str))


def intlike(value: Any) -> None:
    int(value)


def floatlike(value: Any) -> None:
    float(value)


def boolean(value: Any) -> None:
    _expect(isinstance(value, bool))


def array(value: Any) -> None:
    _expect(isinstance(value, list))


def item_type_string(value: Any) -> None:
    _expect(all(isinstance(item, str) for item in value))


def at_most(limit: int) -> Check:
    """Returns a check that an integer is at most ``limit``."""
    return lambda value: _expect(int(value) <= limit)


def within(low: int, high: int, text: str) -> Check:
    return lambda value: _expect(low <= int(value) <= high, text)


def length_at_most(limit: int, text: Callable[[int], str]) -> Check:
    """Returns a check that a list has at most ``limit`` values; ``text`` makes the error message
    from the list's length."""
    return lambda value: _expect(len(value) <= limit, text(len(value)))


def fields_present(parameter: str, *names: str) -> Check:
    """Returns a check that all objects of a list have the named fields. The error message has the
    path of the first missing or empty field."""

    def check(items: Any) -> None:
        for position, item in enumerate(items):
            for name in names:
                value = item.get(name)
                if value is None or value == "":
                    raise CheckFailed(
                        f"Missing value for required parameter '{parameter}[{position}].{name}'."
                    )

    return check


def _expect(holds: bool, text: str | None = None) -> None:
    if not holds:
        raise CheckFailed(text)


_TYPE_CHECKS: Final = frozenset((string, intlike, floatlike, boolean, array, item_type_string))


def run(checks: Mapping[str, tuple[Check, ...]], data: Mapping[str, Any], stopped: bool) -> None:
    for parameter, steps in checks.items():
        if parameter in data:
            value = data[parameter]
        elif required in steps:
            value = None
        else:
            continue
        if parameter == "run_id" and value is None:
            value = data.get("run_uuid")
        for step in steps:
            if stopped or step not in _TYPE_CHECKS:
                _check(step, parameter, value)


def _check(step: Check, parameter: str, value: Any) -> None:
    try:
        step(value)
        return
    except CheckFailed as failure:
        text = failure.text
    except (TypeError, ValueError, AttributeError, OverflowError):
        text = None
    if text is None:
        text = (
            f"Missing value for required parameter '{parameter}'."
            if step is required
            else invalid_value(
                parameter, value, f" Hint: Value was of type '{type(value).__name__}'."
            )
        )
    raise InvalidParameterValue(text + SEE_DOCS)


def invalid_value(parameter: str, value: Any, hint: str | None = None) -> str:
    """Returns MLflow's message for an invalid value of a parameter."""
    shown = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"Invalid value {shown} for parameter '{parameter}' supplied" + (
        f": {hint}" if hint else "."
    )
