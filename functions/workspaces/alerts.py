"""Creates, reads, lists, changes, deletes and tests alerts of a workspace. The Lambda function
``sql`` evaluates them; the table's stream delivers their messages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from mlcore import errors, ids, paging
from mlcore.entities.alerts import SNS, TEST_EVENT, Alert, AlertDestination
from mlcore.http import Request
from mlcore.limits import alerts as limits
from mlcore.limits.shared_checks import check_max_results
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.policies.alerts import disables, keeps_rights, may_notify_operators, may_see
from mlcore.repos import alerts
from mlcore.responses import alerts as responses
from mlcore.webhooks import alert_messages
from workspaces import alert_destinations, alert_sources
from workspaces import messages as m

MAX_RESULTS: Final = 1000
DEFAULT_RESULTS: Final = 100


def create_alert(message: m.CreateAlert, request: Request) -> dict[str, Any]:
    """Creates an alert over an SQL query, which is not run now, or over a budget. Repeating the
    request returns the same alert.

    Raises:
        InvalidParameterValue: a field has no valid value, or the caller has too many alerts.
        PermissionDenied: the caller may not send mail to those who operate the deployment, or has
            the rights that the alert needs only through a group that the sign-in names.
        ResourceDoesNotExist: there is no such saved query or budget.
        ResourceAlreadyExists: the caller has another alert of this name.
    """
    limits.check_name(message.name)
    creator, now = request.creator(), ids.now_ms()
    alert_id = _alert_id(request.workspace, creator.user_id, message.name)
    source = alert_sources.source_of(message, request.workspace)
    alert = Alert(
        workspace=request.workspace,
        alert_id=alert_id,
        name=message.name,
        **source._asdict(),
        condition=message.condition or alert_sources.default_condition(source),
        interval_minutes=message.interval_minutes
        if message.has("interval_minutes")
        else limits.sweep_minutes(),
        for_evaluations=message.for_evaluations if message.has("for_evaluations") else 1,
        reminder_hours=message.reminder_hours if message.has("reminder_hours") else 0,
        is_enabled=message.enabled if message.has("enabled") else True,
        destinations=(),
        created_by=creator.username,
        owner_id=creator.user_id,
        key_id=creator.key_id,
        last_updated_by=creator.username,
        created_at=now,
        last_updated_at=now,
        due_time=now,
    )
    _check(alert, message)
    wanted = alert_destinations.parse(
        message.destinations or [], tells_addresses=may_notify_operators(request.access)
    )
    _check_operators(request, wanted)

    def attempt() -> Alert:
        stored = alerts.find(request.workspace, alert_id)
        if stored is None:
            own = alerts.of_workspace(request.workspace)
            limits.check_count(sum(entry.owner_id == alert.owner_id for entry in own))
            _check_owner(request, alert, wanted)
            sealed = alert_destinations.seal(wanted, alert)
            return alerts.write(alert._replace(destinations=sealed))
        is_same = _content(stored) == _content(alert)
        if is_same and alert_destinations.are_stored(wanted, stored):
            return stored
        raise errors.ResourceAlreadyExists(f"You have an alert {stored.name!r} already.")

    return _answer(retry_on_conflict("alert", attempt))


def get_alert(message: m.AlertId, request: Request) -> dict[str, Any]:
    return _answer(_get(message.alert_id, request))


def list_alerts(message: m.ListAlerts, request: Request) -> dict[str, Any]:
    """Returns a page of the workspace's alerts that the caller sees, by name, without their SQL."""
    limit = message.max_results if message.has("max_results") else DEFAULT_RESULTS
    check_max_results(limit, MAX_RESULTS)
    after = _position_of(message.page_token, request)
    rows = [
        alert
        for alert in alerts.of_workspace(request.workspace)
        if _position(alert) > after and may_see(request.access, alert)
    ]
    answer: dict[str, Any] = {
        "alerts": [responses.alert(alert, with_sql=False) for alert in rows[:limit]]
    }
    if len(rows) > limit:
        answer["next_page_token"] = paging.token(_position(rows[limit - 1]), _token_scope(request))
    return answer


def update_alert(message: m.UpdateAlert, request: Request) -> dict[str, Any]:
    """Changes an alert; omitted fields stay, and so does its state. An update that changes nothing
    returns the alert as it is, so the request may be repeated.

    Raises:
        InvalidParameterValue: a field has no valid value.
        PermissionDenied: the caller may not send mail to those who operate the deployment.
        ResourceConflict: ``revision`` is not that of the stored alert.
        ResourceDoesNotExist: the caller sees no alert of this id, or there is no such saved query
            or budget.
    """
    wanted = None
    if message.has("destinations"):
        wanted = alert_destinations.parse(
            message.destinations, tells_addresses=may_notify_operators(request.access)
        )

    def attempt() -> Alert:
        stored = _get(message.alert_id, request)
        changed = alert_sources.with_changed_source(stored, message)
        for field in ("condition", "interval_minutes", "for_evaluations", "reminder_hours"):
            if message.has(field):
                changed = changed._replace(**{field: getattr(message, field)})
        if message.has("enabled"):
            changed = changed._replace(is_enabled=message.enabled)
        _check(changed, message)
        keeps = wanted is None or alert_destinations.are_stored(wanted, stored)
        if keeps and _content(changed) == _content(stored):
            return stored
        _check_revision(message, stored)
        if wanted is not None and not keeps:
            changed = changed._replace(destinations=alert_destinations.seal(wanted, stored))
        if not disables(message):
            _check_operators(request, changed.destinations)
        now = ids.now_ms()
        return alerts.write(
            changed._replace(last_updated_by=request.username(), last_updated_at=now, due_time=now)
        )

    return _answer(retry_on_conflict("alert", attempt))


def delete_alert(message: m.DeleteAlert, request: Request) -> dict[str, Any]:
    """Deletes an alert with its secrets. Raises as :func:`update_alert`."""

    def attempt() -> dict[str, Any]:
        stored = _get(message.alert_id, request)
        _check_revision(message, stored)
        alerts.delete(stored)
        return {}

    return retry_on_conflict("alert", attempt)


def test_alert(message: m.AlertId, request: Request) -> dict[str, Any]:
    """Queues a test message to the destinations of an alert, and returns their number. The
    responses of the receivers are not returned, because they could come from a private network."""

    def attempt() -> dict[str, Any]:
        stored = _get(message.alert_id, request)
        _check_operators(request, stored.destinations)
        event = alert_messages.announcement(stored, stored.state, TEST_EVENT)
        alerts.write_state(stored, event)
        return {"destinations": len(stored.destinations)}

    return retry_on_conflict("alert", attempt)


def _alert_id(workspace: str, owner_id: int | None, name: str) -> str:
    """Returns the id of an alert, which is a digest of workspace, owner and name. So a repeated
    request finds the same alert, and users do not find out which names others have used."""
    text = f"{workspace}\n{owner_id}\n{name.lower()}"
    return f"al-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _get(alert_id: str, request: Request) -> Alert:
    """Returns an alert that the caller may see. For any other alert raises the error for a missing
    one."""
    alert = alerts.get(request.workspace, alert_id)
    if not may_see(request.access, alert):
        raise alerts.missing(alert_id)
    return alert


def _check(alert: Alert, message: m.CreateAlert | m.UpdateAlert) -> None:
    """Checks the fields that a request sets. Stored fields are not checked: they may exceed newer
    limits, which must not prevent a change."""
    is_new = isinstance(message, m.CreateAlert)
    if is_new or message.has("condition"):
        limits.check_condition(alert.condition)
    if is_new or message.has("interval_minutes"):
        limits.check_interval(alert.interval_minutes)
    if is_new or message.has("for_evaluations"):
        limits.check_range("for_evaluations", alert.for_evaluations, 1, limits.MAX_FOR_EVALUATIONS)
    if is_new or message.has("reminder_hours"):
        limits.check_range("reminder_hours", alert.reminder_hours, 0, limits.MAX_REMINDER_HOURS)


def _check_owner(
    request: Request, alert: Alert, wanted: list[alert_destinations.WantedDestination]
) -> None:
    """Raises PermissionDenied if the caller has the rights for the alert only through a group of
    the login. Such rights are not stored, so an evaluation would not find them."""
    notifies_operators = any(entry.kind == SNS for entry in wanted)
    if request.access is not None and not keeps_rights(alert, notifies_operators):
        raise errors.PermissionDenied(
            "An alert runs with rights that are stored, and yours are not: a group of your login "
            "gives them. Ask an administrator for a grant, or to make you an administrator."
        )


def _check_operators(
    request: Request,
    destinations: Iterable[alert_destinations.WantedDestination | AlertDestination],
) -> None:
    if any(entry.kind == SNS for entry in destinations) and not may_notify_operators(
        request.access
    ):
        raise errors.PermissionDenied(
            "Only administrators may have alerts that mail to those who operate this deployment."
        )


def _check_revision(message: m.UpdateAlert | m.DeleteAlert, stored: Alert) -> None:
    if message.has("revision") and message.revision != stored.revision:
        raise errors.ResourceConflict(
            f"The alert {stored.name!r} has revision {stored.revision}, not {message.revision}: "
            "somebody changed it. Read it again."
        )


def _content(alert: Alert) -> tuple[object, ...]:
    return (
        *(alert.sql, alert.casts, alert.saved, alert.budget_policy_id, alert.condition),
        *(alert.interval_minutes, alert.for_evaluations, alert.reminder_hours, alert.is_enabled),
        # As a text, because NaN does not equal itself.
        repr(sorted(alert.parameters.items())),
    )


def _token_scope(request: Request) -> list[str]:
    return ["alerts", request.workspace]


def _position(alert: Alert) -> tuple[str, str]:
    return alert.name.lower(), alert.alert_id


def _position_of(token: str, request: Request) -> tuple[str, str]:
    """Returns the position after which the page of a token begins; that before all for the first
    page."""
    position = paging.position_of(token, _token_scope(request))
    if position is None:
        return "", ""
    if len(position) != 2 or not all(isinstance(part, str) for part in position):
        raise errors.InvalidParameterValue("Invalid page token")
    return str(position[0]), str(position[1])


def _answer(alert: Alert) -> dict[str, Any]:
    return {"alert": responses.alert(alert)}
