"""Messages of alerts (on SQL queries and budgets): the data of an alert's events, and the bodies
that a Slack webhook, an ordinary webhook and an SNS topic receive."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from mlcore.db import keys
from mlcore.entities.alert_conditions import number_text
from mlcore.entities.alerts import (
    EVENT_ENTITY,
    FAILED_EVENT,
    MAX_ERROR_LENGTH,
    REMINDER_EVENT,
    RESOLVED_EVENT,
    TEST_EVENT,
    TRIGGERED_EVENT,
    Alert,
    AlertState,
)
from mlcore.entities.webhooks import EventName
from mlcore.ids import new_ulid, now_ms
from mlcore.webhooks.announcement import Announcement

MAX_ROWS: Final = 10
MAX_COLUMNS: Final = 10
MAX_CELL_LENGTH: Final = 200
MAX_ROWS_BYTES: Final = 16_000
"""Maximum size of the rows as JSON, since the alert's item contains them."""
MAX_SUBJECT_LENGTH: Final = 100
"""SNS refuses a longer subject."""

_HEADLINES: Final[Mapping[str, str]] = {
    TRIGGERED_EVENT: "Alert triggered",
    RESOLVED_EVENT: "Alert resolved",
    FAILED_EVENT: "Alert cannot be evaluated",
    REMINDER_EVENT: "Alert still needs attention",
    TEST_EVENT: "Test of an alert",
}


def announcement(
    alert: Alert, state: AlertState, action: str, rows: Mapping[str, Any] | None = None
) -> str:
    """Returns the JSON text of an alert's event, for the attribute ``event`` of the written item
    (:mod:`mlcore.webhooks.announcement`).

    Args:
        state: the alert's state that the message reports.
        action: the action of the event, such as ``triggered``.
        rows: ``columns`` and ``rows`` of the query's first rows.
    """
    now = now_ms()
    event_data = {
        "alert_id": alert.alert_id,
        "name": alert.name,
        "condition": alert.condition,
        "state": state.state,
        "since": state.since,
        "value": None if state.value is None else number_text(state.value),
        "error": state.error[:MAX_ERROR_LENGTH] or None,
        "owner": alert.created_by,
        **({"saved": alert.saved} if alert.saved else {}),
        **({"budget_policy_id": alert.budget_policy_id} if alert.budget_policy_id else {}),
        "columns": [_cell(column) for column in (rows or {}).get("columns", ())[:MAX_COLUMNS]],
        "rows": _first_rows((rows or {}).get("rows", ())),
    }
    event = EventName(EVENT_ENTITY, action)
    return Announcement(
        new_ulid(), now, event, alert.workspace, alert.alert_id, data=event_data
    ).text()


def _first_rows(rows: Sequence[Sequence[Any]]) -> list[list[str]]:
    first = [[_cell(value) for value in row[:MAX_COLUMNS]] for row in rows[:MAX_ROWS]]
    while len(json.dumps(first)) > MAX_ROWS_BYTES:
        first.pop()
    return first


def headline(action: str, event_data: Mapping[str, Any]) -> str:
    return f"{_HEADLINES[action]}: {event_data['name']}"


def slack_body(action: str, workspace: str, event_data: Mapping[str, Any]) -> str:
    """Returns an alert's message as the JSON body for an incoming webhook of Slack. Characters that
    Slack interprets are escaped, so that no value of a row of the alert's query can mention people
    or hide a link behind a text."""
    lines = [f"*{_escaped(headline(action, event_data))}*"]
    lines += [_escaped(line) for line in _facts(workspace, event_data)]
    if event_data["rows"]:
        # A code block has no markup; it ends at three backticks.
        lines.append("```\n" + _escaped(_table(event_data)).replace("`", "'") + "\n```")
    # Without this setting Slack makes links of mentions and addresses in the text.
    return json.dumps({"text": "\n".join(lines), "unfurl_links": False, "unfurl_media": False})


def mail_subject(action: str, event_data: Mapping[str, Any]) -> str:
    """Returns the subject of a mail about an alert: printable ASCII in one line."""
    text = headline(action, event_data)[:MAX_SUBJECT_LENGTH]
    return "".join(character if " " <= character <= "~" else "?" for character in text)


def mail_text(action: str, workspace: str, event_data: Mapping[str, Any]) -> str:
    lines = [headline(action, event_data), "", *_facts(workspace, event_data)]
    if event_data["rows"]:
        lines += ["", _table(event_data)]
    # SNS refuses characters that XML does not have.
    return "".join(c for c in "\n".join(lines) if c == "\n" or c.isprintable())


def _facts(workspace: str, event_data: Mapping[str, Any]) -> list[str]:
    value = "no value" if event_data["value"] is None else event_data["value"]
    facts = [f"Condition: {event_data['condition']}"]
    if event_data["error"]:
        facts.append(f"Error: {event_data['error']}")
    else:
        facts.append(f"Value: {value}")
    if event_data["since"] is not None:
        moment = datetime.fromtimestamp(event_data["since"] / 1000, tz=UTC)
        since = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        facts.append(f"State: {event_data['state']} since {since}")
    if workspace != keys.OF_FILES:
        facts.append(f"Workspace: {workspace}")
    if event_data.get("saved"):
        facts.append(f"Saved query: {event_data['saved']}")
    if event_data.get("budget_policy_id"):
        facts.append(f"Budget: {event_data['budget_policy_id']}")
    if event_data["owner"]:
        facts.append(f"Owner: {event_data['owner']}")
    if event_data.get("dashboards"):
        facts.append(f"Dashboards: {event_data['dashboards']}")
    return facts


def _table(event_data: Mapping[str, Any]) -> str:
    """Returns the first rows as text, one line each."""
    lines: list[Sequence[str]] = [event_data["columns"], *event_data["rows"]]
    return "\n".join(" | ".join(" ".join(cell.split()) for cell in line) for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_CELL_LENGTH else text[: MAX_CELL_LENGTH - 1] + "…"


def _escaped(text: str) -> str:
    """Returns a text in which Slack's control characters are escaped, so that ``<!channel>`` has no
    effect."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
