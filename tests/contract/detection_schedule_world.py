"""Judges with a schedule of issue detection and a clock."""

from __future__ import annotations

import json
from typing import Any

import pytest

import judge_runner.app
from mlcore import ids
from mlcore.entities.evaluation.detection_schedule import (
    SCHEDULE_TAG,
    ConfirmedSchedule,
)
from mlcore.repos.evaluation import detection_schedules
from tests.contract import trace_calls
from tests.contract.api import Answer, Api
from tests.contract.issue_detection_world import Detections
from tests.contract.judges_world import Context, ask

Json = dict[str, Any]
HOUR = 3_600_000
DAY = 24 * HOUR
NOON = 1_767_268_800_000  # 2026-01-01T12:00Z, a Thursday
CHECKPOINT_TAG = "mlflow.issueDetection.checkpoint"
DAILY = {
    "version": 1,
    "cadence": "daily",
    "timezone": "UTC",
    "paused": False,
    "fireTime": "09:00",
    "weekday": 0,
    "model": {"endpointName": "e"},
}


class Scheduled(Detections):
    """Judges with a clock for schedules, which a test sets."""

    def __init__(self, api: Api, patch: pytest.MonkeyPatch, folder: Any) -> None:
        super().__init__(api, patch, folder)
        self.now = NOON
        for module in ("evaluation.issue_schedules", "judge_runner.issue_detection.scheduled_runs"):
            patch.setattr(f"{module}.ids", self)

    def now_ms(self) -> int:
        return self.now

    new_ulid = staticmethod(ids.new_ulid)

    def set_tag(self, key: str, value: str) -> None:
        self.api.post(
            "experiments/set-experiment-tag",
            experiment_id=self.experiment,
            key=key,
            value=value,
        )

    def tag(self, key: str) -> Any:
        experiment = self.api.get("experiments/get", experiment_id=self.experiment)["experiment"]
        texts = {each["key"]: each["value"] for each in experiment.get("tags", [])}
        return json.loads(texts[key]) if key in texts else None

    def confirm(self) -> Answer:
        return ask("POST", "mlflow/issues/schedule/state", {"experiment_id": self.experiment})

    def save(self, **fields: Any) -> Any:
        """The next time of a schedule that is saved as the UI does."""
        self.set_tag(SCHEDULE_TAG, json.dumps({**DAILY, **fields}))
        answer = self.confirm()
        assert answer.status == 200, answer
        return answer.body["next_fire_time_ms"]

    def stored(self) -> ConfirmedSchedule | None:
        return detection_schedules.find("default", self.experiment)

    def runs(self) -> list[Json]:
        """Oldest first: ``{"id", "status", "tags"}``."""
        listed_runs = self.api.post("runs/search", experiment_ids=[self.experiment]).get("runs", [])
        return [
            {
                "id": run["info"]["run_id"],
                "status": run["info"]["status"],
                "tags": {tag["key"]: tag["value"] for tag in run["data"].get("tags", [])},
            }
            for run in reversed(listed_runs)
        ]


def sweep() -> None:
    judge_runner.app.handler({"source": "schedule"}, Context())


def traces_at(world: Scheduled, *times: int) -> list[str]:
    """Traces at these times (ms since the epoch), of which every second is WRONG."""
    trace_ids = []
    for number, time in enumerate(times):
        trace, start = f"{time:032x}", time - trace_calls.START // 1_000_000
        texts: Json = {
            "mlflow__spanInputs": "q",
            "mlflow__spanOutputs": "WRONG" if number % 2 else "fine",
        }
        span = trace_calls.span(trace, 1, start=start, end=start + 5, **texts)
        assert trace_calls.export(world.experiment, [span]).status == 200
        trace_ids.append(f"tr-{trace}")
    return trace_ids
