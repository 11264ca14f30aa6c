"""An alert: an SQL query or a budget with a condition on its result, who is notified, and whether
the condition is met."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

SLACK: Final = "slack"
WEBHOOK: Final = "webhook"
SNS: Final = "sns"
"""The topics of the deployment for alerts and alarms, which send mail."""
DESTINATION_TYPES: Final = (SLACK, WEBHOOK, SNS)

UNKNOWN: Final = "UNKNOWN"
"""Not evaluated yet."""
OK: Final = "OK"
TRIGGERED: Final = "TRIGGERED"
ERROR: Final = "ERROR"
"""It cannot be evaluated."""

EVENT_ENTITY: Final = "alert"
"""The entity of the events that notify the destinations of an alert."""
TRIGGERED_EVENT: Final = "triggered"
RESOLVED_EVENT: Final = "resolved"
FAILED_EVENT: Final = "failed"
REMINDER_EVENT: Final = "reminder"
TEST_EVENT: Final = "test"

MAX_ERROR_LENGTH: Final = 1_000
"""Maximum characters of :attr:`AlertState.error`, which is stored in the alert's item."""


class AlertDestination(NamedTuple):
    """A destination of the messages of an alert."""

    destination_id: str
    kind: str
    """One of ``DESTINATION_TYPES``."""
    host: str = ""
    """The host of a webhook's URL."""
    sealed: str = ""
    """JSON with ``url`` and ``secret``, encrypted by :mod:`mlcore.secrets`; empty for SNS."""


class AlertState(NamedTuple):
    """The state of an alert (over an SQL query or a budget) after its last evaluation."""

    state: str = UNKNOWN
    since: int | None = None
    """When this state began, in ms since the epoch."""
    value: float | None = None
    """The value of the last evaluation; None without rows, for NULL, and if it failed."""
    error: str = ""
    """Why the last evaluation failed."""
    evaluated_at: int | None = None
    met_in_a_row: int = 0
    """How many evaluations in a row, up to the last one, have met the condition; failed ones do not
    count."""
    notified_at: int | None = None
    """When the last message to the destinations was written, in ms since the epoch."""


class Alert(NamedTuple):
    workspace: str
    """``*`` for an alert that is a file next to the system tables."""
    alert_id: str
    name: str
    sql: str
    """Empty for an alert over a budget, and in a list."""
    parameters: Mapping[str, str | int | float | bool | None]
    """Values of the query's parameters."""
    casts: Mapping[str, str]
    """The SQL types to which the statement casts parameters, by name."""
    saved: str
    """The saved query from which SQL and parameters were copied; empty without one."""
    budget_policy_id: str
    """The budget that the alert is about; empty for an alert with SQL."""
    condition: str
    interval_minutes: int
    for_evaluations: int
    """How many evaluations in a row must meet the condition before the alert is triggered."""
    reminder_hours: int
    """After how many hours in the same state the message is repeated; 0 for never."""
    is_enabled: bool
    destinations: tuple[AlertDestination, ...]
    created_by: str | None
    """The owner, in whose name the query runs; None if nobody was logged in."""
    owner_id: int | None
    """The owner's number, which a later user of the same name does not have."""
    key_id: str | None
    """The API key of the request that created the alert."""
    last_updated_by: str | None
    created_at: int
    """Milliseconds since the epoch."""
    last_updated_at: int
    due_time: int
    """When the alert is evaluated next."""
    state: AlertState = AlertState()
    revision: int = 0
    """How often users have written it; 0 for an alert that is not stored yet."""
    evaluations: int = 0
    """Counts the writes of its state, from a random number that a new alert gets."""
