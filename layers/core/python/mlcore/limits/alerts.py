"""Rules about the fields of an alert on an SQL result or a budget."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from mlcore.entities import alert_conditions
from mlcore.entities.alert_conditions import InvalidCondition
from mlcore.entities.saved_queries import Value
from mlcore.errors import InvalidParameterValue
from mlcore.limits.saved_queries import MAX_PARAMETERS, MAX_TEXT_LENGTH
from mlcore.limits.saved_queries import check_name as check_query_name

MAX_ALERTS: Final = 100
"""Maximum number of alerts of a user in a workspace."""
MAX_DESTINATIONS: Final = 5
MAX_URL_LENGTH: Final = 2_000
MAX_SECRET_LENGTH: Final = 512
MAX_PARAMETERS_BYTES: Final = 20_000
"""Maximum size of all parameter values as JSON, since the alert's item contains them."""
MAX_CONDITION_LENGTH: Final = 300
MAX_INTERVAL_MINUTES: Final = 7 * 24 * 60
MAX_FOR_EVALUATIONS: Final = 100
MAX_REMINDER_HOURS: Final = 30 * 24

SWEEP_MINUTES: Final = "ALERT_MINUTES"
"""The environment variable with the minutes between two evaluations of alerts by the schedule."""


_PARAMETER: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}")


def check_name(name: str) -> None:
    """Raises InvalidParameterValue unless an alert may have this name. The rule is that of saved
    queries."""
    try:
        check_query_name(name)
    except InvalidParameterValue as error:
        raise InvalidParameterValue(error.message.replace("a saved query", "an alert")) from None


def check_condition(text: str) -> None:
    if len(text) > MAX_CONDITION_LENGTH:
        raise InvalidParameterValue(
            f"The condition of an alert has at most {MAX_CONDITION_LENGTH} characters."
        )
    try:
        alert_conditions.parse(text)
    except InvalidCondition as error:
        raise InvalidParameterValue(str(error)) from None


def sweep_minutes() -> int:
    """Returns the minutes between two scheduled evaluations of alerts."""
    return int(os.environ.get(SWEEP_MINUTES) or 60)


def check_interval(minutes: int) -> None:
    step = sweep_minutes()
    if not 1 <= minutes <= MAX_INTERVAL_MINUTES or minutes % step:
        raise InvalidParameterValue(
            f"'interval_minutes' is a multiple of {step}, because the alerts are evaluated every "
            f"{step} minutes, and at most {MAX_INTERVAL_MINUTES}."
        )


def check_range(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidParameterValue(f"'{name}' is a number from {least} to {most}.")


def check_count(existing: int) -> None:
    """Raises InvalidParameterValue if ``existing`` alerts of a user in a workspace are too many to
    create another."""
    if existing >= MAX_ALERTS:
        raise InvalidParameterValue(f"A user has at most {MAX_ALERTS} alerts in a workspace.")


def parameter_values(sent: Any) -> dict[str, Value]:
    """Checks the values that a request gives for the parameters of an alert's own SQL, and returns
    them by name. Raises InvalidParameterValue."""
    if not isinstance(sent, dict) or len(sent) > MAX_PARAMETERS:
        raise InvalidParameterValue(
            f"'parameters' is an object with at most {MAX_PARAMETERS} values by name."
        )
    for name, value in sent.items():
        is_value = value is None or isinstance(value, str | int | float)
        if not _PARAMETER.fullmatch(name) or not is_value or len(str(value)) > MAX_TEXT_LENGTH:
            raise InvalidParameterValue(
                "A parameter has a name of at most 64 letters, digits and '_', and its value is a "
                f"number, true, false, null or a text of at most {MAX_TEXT_LENGTH} characters."
            )
    check_size(sent)
    return sent


def check_size(values: Mapping[str, Value]) -> None:
    """Checks that the values of an alert's query parameters are small enough to be stored with it.
    Raises InvalidParameterValue otherwise."""
    if len(json.dumps(values)) > MAX_PARAMETERS_BYTES:
        raise InvalidParameterValue(
            f"The parameters of an alert have at most {MAX_PARAMETERS_BYTES} bytes together."
        )
