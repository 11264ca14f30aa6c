"""Rules of the template call their functions again and again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from local.events.schedule import Schedule
from local.template import read
from local.template_definitions import ScheduleDefinition, TemplateError

ROOT = Path(__file__).resolve().parents[2]


def test_each_rule_is_called_in_its_interval_and_survives_a_failure() -> None:
    called: list[tuple[str, Any]] = []
    enough = threading.Event()

    def invoke(name: str, event: Any) -> None:
        called.append((name, event))
        if len(called) >= 4:
            enough.set()
        raise ValueError(name)

    rules = [
        ScheduleDefinition("Often", "a", 0.01, {"source": "x"}),
        ScheduleDefinition("Never", "b", 3600, {}),
    ]
    schedule = Schedule(rules, invoke)
    schedule.start()
    assert enough.wait(60)
    schedule.stop()
    assert set(map(str, called)) == {str(("a", {"source": "x"}))}
    assert not schedule._thread.is_alive()


def test_the_template_looks_for_quiet_runs_for_traces_to_judge_and_for_alerts() -> None:
    rules = read(ROOT / "template.yaml", "a-table-name", "us-east-1").schedules
    assert [(rule.function, rule.seconds, rule.event) for rule in rules] == [
        ("IndexerFunction", 300, {"source": "schedule"}),
        ("JudgeRunnerFunction", 300, {"source": "schedule"}),
        ("SqlFunction", 3600, {"alerts": True}),
    ]


def test_a_rule_that_asks_for_a_calendar_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "template.yaml").read_text().replace("rate(5 minutes)", "cron(0 1 * * ? *)")
    path = tmp_path / "template.yaml"
    path.write_text(text)
    with pytest.raises(TemplateError, match="IndexerSchedule"):
        read(path, "a-table-name", "us-east-1")
