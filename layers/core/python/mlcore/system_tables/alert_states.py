"""Computes the state of an alert after an evaluation, and whether its destinations are notified:
when the state changes (except from unknown to OK), and again after some hours in a state that needs
attention."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.entities.alerts import (
    ERROR,
    FAILED_EVENT,
    OK,
    REMINDER_EVENT,
    RESOLVED_EVENT,
    TRIGGERED,
    TRIGGERED_EVENT,
    UNKNOWN,
    Alert,
    AlertState,
)

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
EARLY: Final = MINUTE
"""An alert is evaluated up to this many ms before its due time, because calls by a schedule come
some seconds early or late."""


class ConditionOutcome(NamedTuple):
    """The result of one evaluation of the condition of an alert over an SQL query or a budget."""

    is_met: bool
    value: float | None = None
    error: str = ""
    """Why the alert cannot be evaluated; empty if it was."""


class Transition(NamedTuple):
    """The alert's state after an evaluation, and the event that reports it."""

    state: AlertState
    action: str | None
    """The action of the event that notifies the destinations; None for no message."""


def following(alert: Alert, outcome: ConditionOutcome, now: int) -> Transition:
    """Returns the state of an alert after an evaluation at ``now`` (ms since the epoch), and the
    event to send, if any."""
    before = alert.state
    if outcome.error:
        # A failed evaluation says nothing about the condition, so the count stays.
        met_in_a_row = before.met_in_a_row
    else:
        met_in_a_row = before.met_in_a_row + 1 if outcome.is_met else 0
    state = _state(alert, outcome, met_in_a_row)
    action = _action(before.state, state)
    if action is None and _needs_reminder(alert, state, now):
        action = REMINDER_EVENT
    after = AlertState(
        state=state,
        since=before.since if state == before.state and before.since is not None else now,
        value=outcome.value,
        error=outcome.error,
        evaluated_at=now,
        met_in_a_row=met_in_a_row,
        notified_at=before.notified_at if action is None else now,
    )
    return Transition(after, action)


def claim_end(alert: Alert, now: int) -> int:
    """Returns the due time to store when a sweep at ``now`` begins to evaluate an alert, in case
    the evaluation never ends: after the alert's interval, but at most an hour later."""
    return now + min(alert.interval_minutes * MINUTE, HOUR)


def due_after(alert: Alert, now: int) -> int:
    """Returns the next due time of an alert that is evaluated by a sweep that began at ``now``: the
    previous due time plus the smallest number of whole intervals, at least one, that lies more than
    :data:`EARLY` (a minute) after ``now``. So a late evaluation does not delay later ones."""
    interval = alert.interval_minutes * MINUTE
    missed = (now + EARLY - alert.due_time) // interval
    return alert.due_time + (max(0, missed) + 1) * interval


def _state(alert: Alert, outcome: ConditionOutcome, met_in_a_row: int) -> str:
    if outcome.error:
        return ERROR
    if not outcome.is_met:
        return OK
    # A triggered alert stays triggered; to become so, it may need several evaluations in a row.
    if alert.state.state == TRIGGERED or met_in_a_row >= alert.for_evaluations:
        return TRIGGERED
    return OK


def _action(before: str, after: str) -> str | None:
    if before == after:
        return None
    if after == OK:
        return None if before == UNKNOWN else RESOLVED_EVENT
    return TRIGGERED_EVENT if after == TRIGGERED else FAILED_EVENT


def _needs_reminder(alert: Alert, state: str, now: int) -> bool:
    notified_at = alert.state.notified_at
    return (
        state in (TRIGGERED, ERROR)
        and alert.reminder_hours > 0
        and notified_at is not None
        and now - notified_at >= alert.reminder_hours * HOUR - EARLY
    )
