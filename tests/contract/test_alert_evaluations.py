"""What alerts notify: changes of their state, once each, whoever evaluates them and dies."""

from __future__ import annotations

import contextlib
import itertools
import threading
from typing import Any

import pytest

import sql.app
from mlcore import errors, topics
from mlcore.db.table import table
from mlcore.entities.alerts import Alert
from mlcore.entities.gateway import BudgetPolicy
from mlcore.gateway.budgets import add_cost
from mlcore.repos import alerts as stored_alerts
from mlcore.repos.gateway import budgets
from mlcore.system_tables import alert_files as files
from mlcore.system_tables import storage
from mlcore.webhooks import alert_messages
from tests.contract.alerts_world import HOUR_MINUTES, AlertsWorld, world

__all__ = ["world"]

TRIGGERED = "Alert triggered: slow"
RESOLVED = "Alert resolved: slow"
FAILED = "Alert cannot be evaluated: slow"
REMINDED = "Alert still needs attention: slow"


def broken() -> Exception:
    return errors.InvalidParameterValue("no such column")


def test_a_change_of_the_state_is_told_once(world: AlertsWorld) -> None:
    alert = world.create()
    expected: list[tuple[Any, list[str], str]] = [
        (1, [], "OK"),
        (6, [TRIGGERED], "TRIGGERED"),
        (9, [], "TRIGGERED"),
        (6, [], "TRIGGERED"),
        (5, [RESOLVED], "OK"),
        (broken(), [FAILED], "ERROR"),
        (broken(), [], "ERROR"),
        (7, [TRIGGERED], "TRIGGERED"),
        (broken(), [FAILED], "ERROR"),
        (1, [RESOLVED], "OK"),
        (1, [], "OK"),
    ]
    for value, messages, state in expected:
        world.evaluate(value)
        assert world.actions() == messages
        shown = world.get(alert["alert_id"])
        assert shown["state"] == state
        assert shown["value"] == (None if isinstance(value, Exception) else str(value))
        assert shown["error"] == (str(value) if isinstance(value, Exception) else None)
        assert shown["revision"] == 1


def test_no_rows_and_nan(world: AlertsWorld) -> None:
    world.create(condition="MAX(n) = NaN")
    for value, messages in ((1, []), (None, []), (float("nan"), [TRIGGERED]), (1, [RESOLVED])):
        world.value = value
        world.evaluate()
        assert world.actions() == messages


@pytest.mark.parametrize("seed", range(5))
def test_messages_follow_from_the_values(world: AlertsWorld, seed: int) -> None:
    """Of random values: the messages are the changes of a state that is computed from them in
    another way, whatever number of evaluations a trigger needs."""
    import random  # noqa: PLC0415

    rng = random.Random(seed)
    needed = rng.randint(1, 4)
    world.create(for_evaluations=needed)
    values: list[Any] = [rng.choice((1, 9, 9, 9, None)) for _ in range(40)]
    told: list[str] = []
    for value in values:
        world.value = broken() if value is None else value
        world.evaluate()
        told += world.actions()
    state, expected = "OK", []
    for position, value in enumerate(values):
        # What fails is as if it were not evaluated.
        known = [entry for entry in values[: position + 1] if entry is not None]
        nines = len(list(itertools.takewhile(lambda entry: entry == 9, reversed(known))))
        before = state
        raised = "TRIGGERED" if nines >= needed else "OK"
        state = "ERROR" if value is None else raised
        if state != before:
            expected.append({"OK": RESOLVED, "TRIGGERED": TRIGGERED, "ERROR": FAILED}[state])
    assert told == expected


def test_reminders(world: AlertsWorld) -> None:
    world.create(reminder_hours=3)
    world.evaluate(9)
    assert world.actions() == [TRIGGERED]
    told = []
    for _ in range(7):
        world.evaluate()
        told.append(world.actions())
    assert told == [[], [], [REMINDED], [], [], [REMINDED], []]
    world.evaluate(1)
    assert world.actions() == [RESOLVED]
    for _ in range(5):
        world.evaluate()
    assert world.actions() == []


def test_two_evaluations_at_once_tell_once(
    world: AlertsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have read which alerts are due before either writes."""
    names = [f"a{number}" for number in range(3)]
    for name in names:
        world.create(name)
    both = threading.Barrier(2)
    due = stored_alerts.due

    def meet(*args: Any) -> list[Alert]:
        alerts_due = due(*args)
        both.wait(20)
        return alerts_due

    world.value = 9
    world.now += HOUR_MINUTES * 60_000
    monkeypatch.setattr(stored_alerts, "due", meet)
    calls = [
        threading.Thread(target=lambda: sql.app.handler({"alerts": True}, None)) for _ in range(2)
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert sorted(world.actions()) == [f"Alert triggered: {name}" for name in names]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("writes", [0, 1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_a_killed_evaluation_loses_and_repeats_no_message(
    world: AlertsWorld, monkeypatch: pytest.MonkeyPatch, after: bool, writes: int
) -> None:
    """Two calls are killed at one of their writes, before or after it; a later one goes on."""
    world.create("a")
    world.create("b")
    put = type(table).put

    left = 0

    def dying(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if after or left >= 0:
            put(*args, **kwargs)
        if left < 0:
            raise Killed

    for value, verb in ((9, "triggered"), (1, "resolved"), (9, "triggered")):
        world.value = value
        world.now += HOUR_MINUTES * 60_000
        monkeypatch.setattr(type(table), "put", dying)
        for _ in range(2):
            left = writes
            with contextlib.suppress(Killed):
                sql.app.handler({"alerts": True}, None)
        monkeypatch.setattr(type(table), "put", put)
        world.evaluate()
        assert sorted(world.actions()) == [f"Alert {verb}: a", f"Alert {verb}: b"]


def test_a_change_by_a_user_wins_against_an_evaluation(world: AlertsWorld) -> None:
    alert = world.create()
    answer = world.query

    def edited(request: dict[str, Any]) -> dict[str, Any]:
        world.patch_query(answer)
        world.ask("PATCH", f"/{alert['alert_id']}", {"condition": "MAX(n) > 50"})
        return answer(request)

    world.patch_query(edited)
    assert world.evaluate(9)["skipped"] == ["slow"]
    assert world.actions() == []
    shown = world.get(alert["alert_id"])
    assert (shown["condition"], shown["state"]) == ("MAX(n) > 50", "UNKNOWN")
    # It is due at once: the state is about what the user wrote.
    world.evaluate(60, minutes=5)
    assert world.actions() == [TRIGGERED]


def test_a_deleted_alert_stays_deleted(world: AlertsWorld) -> None:
    alert = world.create()
    answer = world.query

    def deleted(request: dict[str, Any]) -> dict[str, Any]:
        world.patch_query(answer)
        assert world.ask("DELETE", f"/{alert['alert_id']}")[0] == 200
        return answer(request)

    world.patch_query(deleted)
    world.evaluate(9)
    assert world.actions() == []
    assert world.ask("GET", f"/{alert['alert_id']}")[0] == 404


def test_an_evaluation_of_a_deleted_alert_does_not_write_a_new_one(world: AlertsWorld) -> None:
    """The new alert has the id of the deleted one, at the same time in ms."""
    alert = world.create()
    answer = world.query

    def made_anew(request: dict[str, Any]) -> dict[str, Any]:
        world.patch_query(answer)
        assert world.ask("DELETE", f"/{alert['alert_id']}")[0] == 200
        made = world.create(condition="MAX(n) > 50")
        # As many writes of the state as the evaluated alert had.
        stored_alerts.write_state(stored_alerts.get("default", made["alert_id"]))
        return answer(request)

    world.patch_query(made_anew)
    assert world.evaluate(9)["skipped"] == ["slow"]
    assert world.actions() == []
    shown = world.get(alert["alert_id"])
    assert (shown["condition"], shown["state"]) == ("MAX(n) > 50", "UNKNOWN")


def test_a_message_to_a_deleted_destination_is_dropped(world: AlertsWorld) -> None:
    alert = world.create()
    world.evaluate(9)
    world.ask("PATCH", f"/{alert['alert_id']}", {"destinations": []})
    assert world.actions() == []


def test_a_busy_engine_says_nothing_about_an_alert(world: AlertsWorld) -> None:
    alert = world.create()
    world.evaluate(9)
    assert world.actions() == [TRIGGERED]
    assert world.evaluate(errors.RequestLimitExceeded("busy"))["skipped"] == ["slow"]
    assert world.get(alert["alert_id"])["state"] == "TRIGGERED"
    assert world.evaluate(9, minutes=5)["met"] == ["slow"]
    assert world.actions() == []


def test_a_fault_in_one_alert_stops_no_other(
    world: AlertsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create("a")
    world.create("b")
    announcement = alert_messages.announcement

    def faulty(alert: Alert, *args: Any) -> str:
        if alert.name == "a":
            raise ZeroDivisionError
        return announcement(alert, *args)

    monkeypatch.setattr(alert_messages, "announcement", faulty)
    assert world.evaluate(9)["skipped"] == ["a"]
    assert world.actions() == ["Alert triggered: b"]
    monkeypatch.setattr(alert_messages, "announcement", announcement)
    assert "a" in world.evaluate(9)["met"]
    assert world.actions() == ["Alert triggered: a"]


def test_files_have_states(world: AlertsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    mails: list[str] = []
    monkeypatch.setattr(topics, "publish", lambda _, subject, __: mails.append(subject))
    monkeypatch.setenv(topics.ALERT_TOPICS, "arn:a")

    def put(name: str, text: str) -> None:
        storage.store().put(f"{files.FOLDER}/{name}.sql", text.encode())

    put("mine", "-- when: MAX(n) > 5\nSELECT 1 AS n")
    put("quiet", "-- notify: nobody\n-- when: MAX(n) > 5\nSELECT 1 AS n")
    put("strange", "-- notify: arn:aws:sns:us-east-1:1:other\n-- when: MAX(n) > 5\nSELECT 1 AS n")
    put("wordless", "SELECT 1 AS n")
    told = []
    for value in (1, 9, 9, 1, 1):
        answer = world.evaluate(value)
        assert answer["failed"] == ["strange", "wordless"]
        world.delivered()
        told.append(sorted(mails))
        mails.clear()
    failed = [f"Alert cannot be evaluated: {name}" for name in ("strange", "wordless")]
    # The built-in alert is raised by values below 0.9.
    assert told == [failed, ["Alert triggered: mine"], [], ["Alert resolved: mine"], []]
    assert len(stored_alerts.of_workspace("*")) == 5
    storage.store().delete(f"{files.FOLDER}/mine.sql")
    world.evaluate()
    assert len(stored_alerts.of_workspace("*")) == 4


def test_budgets(world: AlertsWorld) -> None:
    policy = BudgetPolicy(
        budget_policy_id="bp-1",
        workspace="default",
        budget_unit="USD",
        budget_amount=10.0,
        duration_unit="DAYS",
        duration_value=1,
        target_scope="GLOBAL",
        budget_action="ALERT",
        target_value=None,
        created_by=None,
        last_updated_by=None,
        created_at=0,
        last_updated_at=0,
    )
    budgets.write(policy)
    fields = {
        name: value for name, value in world.body().items() if name not in ("sql", "condition")
    }
    status, body = world.ask("POST", "", {**fields, "budget_policy_id": "bp-1"})
    assert status == 200, body
    assert body["alert"]["condition"] == "MAX(spent_ratio) >= 1"
    world.evaluate()
    assert world.actions() == []
    add_cost([policy], 11.0, "default")
    world.evaluate()
    [slack] = world.delivered()
    assert slack.body["text"].startswith(f"*{TRIGGERED}*")
    assert "bp-1 | 11.0 | 10.0 | 1.1" in slack.body["text"]
    assert world.asked == []
    budgets.delete(policy)
    world.evaluate()
    assert world.actions() == [FAILED]
