"""Alerts as JSON. Of a destination's address at most the host is returned; secrets never are."""

from __future__ import annotations

from typing import Any

from mlcore.entities.alert_conditions import number_text
from mlcore.entities.alerts import WEBHOOK, Alert, AlertDestination


def alert(entity: Alert, *, with_sql: bool = True) -> dict[str, Any]:
    """Returns the JSON of an alert over an SQL query or a budget.

    Args:
        with_sql: whether the JSON contains the alert's SQL; lists omit it.
    """
    state = entity.state
    fields: dict[str, Any] = {"alert_id": entity.alert_id, "name": entity.name}
    if entity.budget_policy_id:
        fields["budget_policy_id"] = entity.budget_policy_id
    elif with_sql:
        parameters = {
            name: number_text(value) if isinstance(value, float) else value
            for name, value in entity.parameters.items()
        }
        fields |= {"sql": entity.sql, "parameters": parameters}
    if entity.saved:
        fields["saved"] = entity.saved
    return {
        **fields,
        "condition": entity.condition,
        "interval_minutes": entity.interval_minutes,
        "for_evaluations": entity.for_evaluations,
        "reminder_hours": entity.reminder_hours,
        "enabled": entity.is_enabled,
        "destinations": list(map(_destination, entity.destinations)),
        "state": state.state,
        "state_since": state.since,
        "value": None if state.value is None else number_text(state.value),
        "error": state.error or None,
        "last_evaluated_at": state.evaluated_at,
        "last_notified_at": state.notified_at,
        "created_by": entity.created_by,
        "last_updated_by": entity.last_updated_by,
        "creation_time": entity.created_at,
        "last_update_time": entity.last_updated_at,
        "revision": entity.revision,
    }


def _destination(entity: AlertDestination) -> dict[str, Any]:
    fields = {"destination_id": entity.destination_id, "type": entity.kind}
    # Slack's addresses are secrets, and so may be those of webhooks, except for the host.
    return {**fields, "host": entity.host} if entity.kind == WEBHOOK else fields
