"""Alerts: one item each, all in one partition. LSI2 lists the alerts that are evaluated by
schedule, in the order in which they are due, so the query for due alerts reads no other items. All
reads are strongly consistent.

A write of an alert may announce an event. The stream then delivers it to the alert's destinations,
so no message is sent for a write that failed.
"""

from __future__ import annotations

import json
import secrets
from typing import Any, Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, Put, table
from mlcore.entities.alerts import MAX_ERROR_LENGTH, Alert, AlertDestination, AlertState
from mlcore.ids import now_ms
from mlcore.models.alerts import Alert as AlertItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.workspaces import guarded_writes

_FIRST_COUNTS: Final = 2**48

_LISTED: Final = (
    *(AlertItem.workspace, AlertItem.alert_id, AlertItem.name, AlertItem.saved),
    *(AlertItem.budget_policy_id, AlertItem.condition, AlertItem.interval_minutes),
    *(AlertItem.for_evaluations, AlertItem.reminder_hours, AlertItem.is_enabled),
    *(AlertItem.destinations, AlertItem.created_by, AlertItem.user_id, AlertItem.key_id),
    *(AlertItem.last_updated_by, AlertItem.created_at, AlertItem.last_updated_at),
    *(AlertItem.due_time, AlertItem.state, AlertItem.state_since, AlertItem.value),
    *(AlertItem.error, AlertItem.evaluated_at, AlertItem.met_in_a_row, AlertItem.notified_at),
    *(AlertItem.version, AlertItem.evaluations),
)
"""The attributes of a list: all but the query with its parameters, and the last event."""


def find(workspace: str, alert_id: str) -> Alert | None:
    """Returns an alert (over an SQL query or a budget) by its id; None if the workspace has no such
    alert. One consistent GetItem."""
    item = table.get(keys.alert(workspace, alert_id))
    return None if item is None else of_item(item)


def of_workspace(workspace: str) -> list[Alert]:
    """Returns the alerts of a workspace without their SQL and its parameters, ordered by name; one
    Query per MB."""
    items = table.query_all(
        keys.alert("", "").pk, between=keys.alerts_of_workspace(workspace), attributes=_LISTED
    )
    return sorted(map(of_item, items), key=lambda alert: (alert.name.lower(), alert.alert_id))


def due(now: int, most: int) -> list[Alert]:
    """Returns at most ``most`` alerts of all workspaces that are due at ``now`` (ms since the
    epoch), the longest due first; one consistent Query of LSI2."""
    page = table.query(
        keys.alert("", "").pk, index="LSI2", between=keys.lsi2_alerts_until(now), limit=most
    )
    return list(map(of_item, page.items))


def write(alert: Alert) -> Alert:
    """Writes an alert (on the rows of a SQL query, or on a budget) that is new (``revision`` 0) or
    that a user has changed. Returns the alert as it is stored.

    Raises:
        WriteConflict: the alert was written, evaluated, created or deleted since it was read.
        ResourceDoesNotExist: the workspace of a new alert was deleted.
    """
    written = alert._replace(revision=alert.revision + 1)
    if not alert.revision:
        # A random start: an evaluation of a deleted alert must not write the state of a new alert
        # that has the same id.
        written = written._replace(evaluations=secrets.randbelow(_FIRST_COUNTS))
    operation = Put(_item(written, None), _unchanged(alert))
    is_guarded = not alert.revision and alert.workspace != keys.OF_FILES
    guarded_writes.write([operation], creates_in=alert.workspace if is_guarded else None)
    return written


def write_state(alert: Alert, event: str | None = None) -> Alert:
    """Writes the state of an alert that was evaluated, and returns it as it is stored.

    Args:
        event: the announcement (:mod:`mlcore.webhooks.announcement`) of a message to the alert's
            destinations; None for no message.

    Raises:
        WriteConflict: the alert was written, evaluated or deleted since it was read.
    """
    written = alert._replace(evaluations=alert.evaluations + 1)
    try:
        table.put(_item(written, event), _unchanged(alert))
    except ConditionFailed as failed:
        raise WriteConflict from failed
    return written


def delete(alert: Alert) -> None:
    """Deletes an alert and with it the secrets of its destinations. Raises WriteConflict if the
    alert was written, evaluated or deleted since it was read."""
    try:
        table.delete(keys.alert(alert.workspace, alert.alert_id), _unchanged(alert))
    except ConditionFailed as failed:
        raise WriteConflict from failed


def remove(alert: Alert) -> None:
    """Deletes an alert (over SQL or a budget), even if it changed since it was read. Idempotent."""
    table.delete(keys.alert(alert.workspace, alert.alert_id))


def move(alert: Alert, workspace: str, destinations: tuple[AlertDestination, ...]) -> None:
    """Moves an alert to another workspace, with its state.

    Args:
        destinations: the destinations of the alert, encrypted for the other workspace.

    Raises:
        WriteConflict: the alert was written, evaluated or deleted since it was read, or the other
            workspace has an alert with its id.
        ResourceDoesNotExist: the other workspace was deleted.
    """
    deletion = Delete(keys.alert(alert.workspace, alert.alert_id), _unchanged(alert))
    moved = alert._replace(workspace=workspace, destinations=destinations)
    operation = Put(_item(moved, None), _absent())
    guarded_writes.write([operation, deletion], creates_in=workspace)


def of_item(raw: Raw) -> Alert:
    """Returns the alert (over an SQL query or a budget) that a DynamoDB item holds, for example the
    item in a stream record."""
    item = AlertItem.of(raw)
    state = AlertState(
        state=item.state,
        since=item.state_since,
        value=None if item.value is None else float(item.value),
        error=item.error or "",
        evaluated_at=item.evaluated_at,
        met_in_a_row=item.met_in_a_row,
        notified_at=item.notified_at,
    )
    return Alert(
        workspace=item.workspace,
        alert_id=item.alert_id,
        name=item.name,
        sql=item.sql or "",
        parameters=json.loads(item.parameters or "{}"),
        casts=json.loads(item.casts or "{}"),
        saved=item.saved or "",
        budget_policy_id=item.budget_policy_id or "",
        condition=item.condition,
        interval_minutes=item.interval_minutes,
        for_evaluations=item.for_evaluations,
        reminder_hours=item.reminder_hours,
        is_enabled=item.is_enabled,
        destinations=tuple(
            AlertDestination(*fields) for fields in json.loads(item.destinations or "[]")
        ),
        created_by=item.created_by,
        owner_id=item.user_id,
        key_id=item.key_id,
        last_updated_by=item.last_updated_by,
        created_at=item.created_at,
        last_updated_at=item.last_updated_at,
        due_time=item.due_time,
        state=state,
        revision=item.version,
        evaluations=item.evaluations,
    )


def get(workspace: str, alert_id: str) -> Alert:
    """Returns an alert on an SQL result or a budget, as :func:`find`. Raises
    ResourceDoesNotExist."""
    alert = find(workspace, alert_id)
    if alert is None:
        raise missing(alert_id)
    return alert


def missing(alert_id: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"The workspace has no alert with the id {alert_id!r}.")


def _unchanged(alert: Alert) -> ConditionExpression:
    """Returns a condition on an item's counters; revision 0 requires that there is no item."""
    if not alert.revision:
        return _absent()
    condition = ConditionExpression()
    condition.require_equal(AlertItem.version, alert.revision)
    condition.require_equal(AlertItem.evaluations, alert.evaluations)
    return condition


def _absent() -> ConditionExpression:
    condition = ConditionExpression()
    condition.require_absent(AlertItem.PK)
    return condition


def _item(alert: Alert, event: str | None) -> Raw:
    key, state = keys.alert(alert.workspace, alert.alert_id), alert.state
    scheduled = alert.is_enabled and alert.workspace != keys.OF_FILES
    item = AlertItem(
        PK=key.pk,
        SK=key.sk,
        lsi2sk=keys.lsi2_alert(alert.due_time, alert.workspace, alert.alert_id)
        if scheduled
        else None,
        version=alert.revision,
        evaluations=alert.evaluations,
        workspace=alert.workspace,
        alert_id=alert.alert_id,
        name=alert.name,
        sql=alert.sql or None,
        parameters=_json(dict(alert.parameters)),
        casts=_json(dict(alert.casts)),
        saved=alert.saved or None,
        budget_policy_id=alert.budget_policy_id or None,
        condition=alert.condition,
        interval_minutes=alert.interval_minutes,
        for_evaluations=alert.for_evaluations,
        reminder_hours=alert.reminder_hours,
        is_enabled=alert.is_enabled,
        destinations=_json([list(destination) for destination in alert.destinations]),
        created_by=alert.created_by,
        user_id=alert.owner_id,
        key_id=alert.key_id,
        last_updated_by=alert.last_updated_by,
        created_at=alert.created_at,
        last_updated_at=alert.last_updated_at,
        due_time=alert.due_time,
        state=state.state,
        state_since=state.since,
        value=None if state.value is None else repr(state.value),
        error=state.error[:MAX_ERROR_LENGTH] or None,
        evaluated_at=state.evaluated_at,
        met_in_a_row=state.met_in_a_row,
        notified_at=state.notified_at,
        event=event,
        updated_at=now_ms(),
    )
    return item.serialize()


def _json(value: Any) -> str | None:
    """Returns JSON; None for an empty object or list. NaN and infinities are kept."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else None
