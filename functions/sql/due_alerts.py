"""Evaluates the alerts, on a schedule: those of workspaces that are due, and all that are files, in
this package's folder ``queries`` (if the deployment has a topic for alerts) or next to the system
tables. The write of an alert's new state also contains its message, which the stream delivers. So a
message is sent once, even if two evaluations run at once or one is killed.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from mlcore import errors, topics
from mlcore.db import keys
from mlcore.entities.alerts import (
    ERROR,
    REMINDER_EVENT,
    SNS,
    TRIGGERED,
    TRIGGERED_EVENT,
    Alert,
    AlertDestination,
)
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos import alerts as stored_alerts
from mlcore.system_tables import alert_files, alert_states
from mlcore.webhooks import alert_messages
from sql.alert_evaluation import Evaluation

QUERIES: Final = Path(__file__).with_name("queries")
"""The folder with the alerts of every deployment that has a topic for them. A file with the same
name in the bucket replaces a file of this folder."""
MAX_ALERTS: Final = 500
"""The most alerts of workspaces that one call evaluates; the next call begins with the others."""
MAX_SECONDS: Final = 90.0
"""The duration of a call; after it no further evaluation starts. The function has 120 seconds."""
FILES_SHARE: Final = 0.5
"""The share of a call's duration that the evaluation of the alerts in files may take. The rest is
left for the alerts of workspaces."""


class _Counts(NamedTuple):
    met: list[str]
    failed: list[str]
    skipped: list[str]

    def answer(self) -> dict[str, Any]:
        return {name: sorted(names) for name, names in self._asdict().items()}


class _File(NamedTuple):
    alert: Alert
    sql: str
    fault: str


def check_all() -> dict[str, Any]:
    """Evaluates the alerts (on SQL queries or budgets) that are due, and all that are files.
    Returns the names of those whose condition is met (``met``), that cannot be evaluated
    (``failed``), and that are left to the next call (``skipped``): for lack of time, after an error
    of this server, or because they were written meanwhile. An alert that cannot be evaluated does
    not stop the others."""
    begun, sweep_time = time.monotonic(), now_ms()
    counts = _Counts([], [], [])
    late: list[Alert] = []
    for file in _readable_files():
        if time.monotonic() - begun > MAX_SECONDS * FILES_SHARE:
            late.append(file.alert)
            continue
        _evaluate(file.alert, file.sql, counts, sweep_time, file.fault)
    for alert in _in_turns(stored_alerts.due(sweep_time + alert_states.EARLY, MAX_ALERTS)):
        if time.monotonic() - begun > MAX_SECONDS:
            late.append(alert)
            continue
        _evaluate(alert, alert.sql, counts, sweep_time)
    if late:
        counts.skipped.extend(alert.name for alert in late)
        age = max(0, sweep_time - min(alert.due_time for alert in late)) // 1000
        logger.warning(
            "alerts are left to the next call", extra={"alerts": len(late), "oldest_seconds": age}
        )
    return counts.answer()


def _in_turns(due: list[Alert]) -> list[Alert]:
    """Returns alerts in the order of evaluation: budgets first, because they need no query. Within
    both groups the owners take turns, so that slow alerts of one owner delay others little."""
    turns: Counter[int | None] = Counter()
    order: list[tuple[bool, int, Alert]] = []
    for alert in due:
        turns[alert.owner_id] += 1
        order.append((not alert.budget_policy_id, turns[alert.owner_id], alert))
    return [alert for _, _, alert in sorted(order, key=lambda entry: entry[:2])]


def _readable_files() -> list[_File]:
    """Returns the alerts that are files; none if they cannot be read, because the alerts of
    workspaces do not need them."""
    try:
        return _files()
    except Exception:
        logger.exception("the files of alerts cannot be read")
        return []


def _files() -> list[_File]:
    """Returns the alerts that are files, those with the earliest due time first. Deletes the states
    of files that no longer exist, unless no file is left."""
    texts: dict[str, str] = {}
    if topics.of_alerts():
        texts = {path.stem: path.read_text() for path in sorted(QUERIES.glob("*.sql"))}
    texts |= dict(alert_files.stored())
    if not texts:
        return []
    states = {alert.alert_id: alert for alert in stored_alerts.of_workspace(keys.OF_FILES)}
    files = [_file(name, text, states) for name, text in texts.items()]
    for alert_id in states.keys() - {file.alert.alert_id for file in files}:
        stored_alerts.remove(states[alert_id])
    return sorted(files, key=lambda file: (file.alert.due_time, file.alert.name))


def _file(name: str, text: str, states: Mapping[str, Alert]) -> _File:
    """Returns a file as an alert, with its stored state. A fault in the file is in the
    result, and makes the evaluation fail."""
    alert_id = f"file-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    condition = alert_files.when(text) or ""
    notifies = alert_files.notifies(text)
    fault = "The line -- notify: says sns or nobody." if notifies is None else ""
    destinations = () if notifies is False else (AlertDestination(SNS, SNS),)
    stored = states.get(alert_id)
    if stored is not None:
        changed = stored._replace(condition=condition, destinations=destinations)
        return _File(changed, text, fault)
    now = now_ms()
    alert = Alert(
        workspace=keys.OF_FILES,
        alert_id=alert_id,
        name=name,
        sql="",
        parameters={},
        casts={},
        saved="",
        budget_policy_id="",
        condition=condition,
        interval_minutes=1,
        for_evaluations=1,
        reminder_hours=0,
        is_enabled=True,
        destinations=destinations,
        created_by=None,
        owner_id=None,
        key_id=None,
        last_updated_by=None,
        created_at=now,
        last_updated_at=now,
        due_time=now,
    )
    return _File(alert, text, fault)


def _evaluate(alert: Alert, sql: str, counts: _Counts, sweep_time: int, fault: str = "") -> None:
    """Evaluates an alert and writes its state. The state is not written if a user has changed the
    alert meanwhile, or another call has evaluated it. The due time is moved before the evaluation:
    if the evaluation kills this call, the next call does not begin with the same alert."""
    try:
        if not alert.revision:
            # The stream delivers changes of an item only, so the item is made first.
            alert = stored_alerts.write(alert)
        due_time = alert_states.due_after(alert, sweep_time)
        claim_end = alert_states.claim_end(alert, sweep_time)
        claimed = stored_alerts.write_state(alert._replace(due_time=claim_end))
        try:
            evaluation = Evaluation(claimed, sql, fault)
        except (errors.RequestLimitExceeded, errors.TemporarilyUnavailable):
            # Nothing is known about the alert. It stays due.
            stored_alerts.write_state(claimed._replace(due_time=alert.due_time))
            raise
        step = alert_states.following(alert, evaluation.outcome, now_ms())
        event = None
        if step.action is not None:
            shows_rows = step.action in (TRIGGERED_EVENT, REMINDER_EVENT)
            rows = evaluation.first_rows() if shows_rows and not step.state.error else None
            event = alert_messages.announcement(alert, step.state, step.action, rows)
        stored_alerts.write_state(claimed._replace(state=step.state, due_time=due_time), event)
    except WriteConflict:
        logger.info("an alert was written meanwhile", extra={"alert": alert.name})
        counts.skipped.append(alert.name)
        return
    except (errors.RequestLimitExceeded, errors.TemporarilyUnavailable) as error:
        logger.warning("an alert was not evaluated", extra={"alert": alert.name, "why": str(error)})
        counts.skipped.append(alert.name)
        return
    except Exception:
        # A fault of this program must not stop the other alerts.
        logger.exception("an alert was not evaluated", extra={"alert": alert.name})
        counts.skipped.append(alert.name)
        return
    log_fields = {
        "alert": alert.name,
        "workspace": alert.workspace,
        "when": alert.condition,
        "value": step.state.value,
        "state": step.state.state,
        "sent": step.action,
    }
    if step.state.state == ERROR:
        counts.failed.append(alert.name)
        logger.warning(
            "an alert cannot be evaluated", extra={**log_fields, "why": step.state.error}
        )
        return
    if evaluation.outcome.is_met:
        counts.met.append(alert.name)
    is_triggered = step.state.state == TRIGGERED
    (logger.warning if is_triggered else logger.info)("an alert was evaluated", extra=log_fields)
