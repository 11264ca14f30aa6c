"""Computes the state of an alert after an evaluation, and whether its destinations are notified: of
a change of the state, and again after some hours in a state that needs attention."""

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
"""An alert is due so many ms before its time: the calls of a schedule come some seconds early or
late."""


class ConditionOutcome(NamedTuple):
    """What one evaluation has found."""

    is_met: bool
    value: float | None = None
    error: str = ""
    """Why the alert cannot be evaluated; empty if it was."""


class Transition(NamedTuple):
    """What follows from an evaluation."""

    state: AlertState
    action: str | None
    """The action of the event that notifies the destinations; None for no message."""


def following(alert: Alert, outcome: ConditionOutcome, now: int) -> Transition:
    """Returns the state of an alert after an evaluation at ``now`` (ms since the epoch)."""
    before = alert.state
    if outcome.error:
        # Nothing is known about the condition: the next value goes on where the last one was.
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
    """Returns when an alert is due again if its evaluation, in a sweep that began at ``now``, does
    not end: after its interval, but within an hour."""
    return now + min(alert.interval_minutes * MINUTE, HOUR)


def due_after(alert: Alert, now: int) -> int:
    """Returns when an alert is due next that a sweep evaluates which began at ``now``: at the first
    multiple of its interval, counted from when it was due. So a late evaluation delays no later
    ones."""
    interval = alert.interval_minutes * MINUTE
    missed = (now + EARLY - alert.due_time) // interval
    return alert.due_time + (max(0, missed) + 1) * interval


def _state(alert: Alert, outcome: ConditionOutcome, met_in_a_row: int) -> str:
    if outcome.error:
        return ERROR
    if not outcome.is_met:
        return OK
    # An alert that is triggered stays so; otherwise one evaluation may be chance.
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
