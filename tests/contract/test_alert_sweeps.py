"""Which alerts a sweep evaluates, in which order, and what one alert may cost the others."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import sql.app
from mlcore.db import capacity
from mlcore.repos import alerts as stored_alerts
from mlcore.system_tables import alert_files as files
from sql import due_alerts
from tests.contract.alerts_world import HOUR_MINUTES, AlertsWorld, world

__all__ = ["world"]


class Killed(BaseException):
    pass


def test_intervals(world: AlertsWorld) -> None:
    """An alert is evaluated once in its interval, however often the schedule calls, early or late;
    a disabled one never."""
    often, rare = world.create("often"), world.create("rare", interval_minutes=180)
    world.create("never", enabled=False)
    world.evaluate(1, minutes=0)
    counts = {"often": 0, "rare": 0}
    shifts = itertools.cycle((-0.4, 0.0, 0.4))
    last = {
        name: world.get(alert["alert_id"])["last_evaluated_at"]
        for name, alert in (("often", often), ("rare", rare))
    }
    for _ in range(18):
        base = world.now
        world.now = round(base + next(shifts) * 60_000)
        world.evaluate()
        world.now = base + HOUR_MINUTES * 60_000
        for name, alert in (("often", often), ("rare", rare)):
            evaluated = world.get(alert["alert_id"])["last_evaluated_at"]
            counts[name] += evaluated != last[name]
            last[name] = evaluated
    assert counts == {"often": 18, "rare": 6}


def test_alerts_of_workspaces_do_not_need_the_files(
    world: AlertsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> Any:
        raise OSError("no bucket")

    monkeypatch.setattr(files, "stored", unreadable)
    world.create()
    assert world.evaluate(9)["met"] == ["slow"]


def test_an_alert_that_kills_the_evaluations_delays_no_other_for_long(world: AlertsWorld) -> None:
    for name in ("a", "b", "c"):
        world.create(name, condition=f"MAX({name}) > 5")
        # So c is due after those that kill.
        world.now += 1
    killers, answer = {"a", "b"}, world.query

    def query(request: dict[str, Any]) -> dict[str, Any]:
        if any(f"`{name}`" in request["sql"] for name in killers):
            raise Killed
        return answer(request)

    world.patch_query(query)
    world.value = 9
    world.now += HOUR_MINUTES * 60_000
    for _ in killers:
        with pytest.raises(Killed):
            sql.app.handler({"alerts": True}, None)
    assert sql.app.handler({"alerts": True}, None)["met"] == ["c"]


def test_owners_take_turns_and_budgets_are_first(world: AlertsWorld) -> None:
    world.create()
    [alert] = stored_alerts.of_workspace("default")
    due = [
        *(alert._replace(name=f"a{number}", owner_id=1) for number in range(3)),
        *(alert._replace(name=f"b{number}", owner_id=2) for number in range(2)),
        alert._replace(name="budget", owner_id=1, budget_policy_id="bp"),
    ]
    names = [entry.name for entry in due_alerts._in_turns(due)]
    assert names == ["budget", "a0", "b0", "a1", "b1", "a2"]


def test_an_evaluation_late_in_a_sweep_is_not_the_only_one_of_two_intervals(
    world: AlertsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALERT_MINUTES", "5")
    world.create(interval_minutes=5)
    answer = world.query

    def slow(request: dict[str, Any]) -> dict[str, Any]:
        world.now += 80_000
        return answer(request)

    world.patch_query(slow)
    # Each sweep begins 230 seconds after the alert was due, and less than 60 before it is again.
    begun = world.now - 70_000
    for number in range(1, 6):
        world.now = begun + number * 5 * 60_000
        count = len(world.asked)
        world.evaluate(minutes=0)
        assert len(world.asked) == count + 1


def test_a_call_without_due_alerts_makes_one_request(world: AlertsWorld) -> None:
    for number in range(30):
        world.create(f"a{number}")
    world.evaluate(1)
    with capacity.measure() as cost:
        assert world.evaluate(minutes=5) == {"met": [], "failed": [], "skipped": []}
    assert (cost.requests, cost.write_units) == (1, 0)
    assert cost.read_units <= 1
