"""Short ways to write the calls that most comparisons make; sends nothing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from tests.differential.rest import Call, Ref, get, post

E, R = Ref("experiment"), Ref("run")
UNKNOWN = "f" * 32


def name() -> str:
    return f"sequences-{uuid4().hex[:12]}"


def experiment(save: str = "experiment", **more: Any) -> Call:
    return post("experiments/create", {"name": name(), **more}, saves={save: "experiment_id"})


def run(save: str = "run", inside: str = "experiment", **more: Any) -> Call:
    body = {"experiment_id": Ref(inside), "run_name": "n", "start_time": 1, **more}
    return post("runs/create", body, saves={save: "run.info.run_id"})


def metric(key: str, value: Any, timestamp: int = 1, step: int = 0) -> dict[str, Any]:
    return {"key": key, "value": value, "timestamp": timestamp, "step": step}


def log_metric(key: str, value: Any, timestamp: int = 1, step: int = 0, to: Any = R) -> Call:
    return post("runs/log-metric", {"run_id": to, **metric(key, value, timestamp, step)})


def batch(to: Any = R, **parts: Any) -> Call:
    return post("runs/log-batch", {"run_id": to, **parts})


def pairs(**values: str) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def get_run(of: Any = R) -> Call:
    return get("runs/get", run_id=of)


def history(key: str, of: Any = R, **more: Any) -> Call:
    return get("metrics/get-history", run_id=of, metric_key=key, **more)
