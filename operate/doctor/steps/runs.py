"""The step of the command ``doctor`` that checks that a run stores single and batched values, and
that repeated log requests change nothing."""

from __future__ import annotations

import time
from typing import Any

from operate.doctor.checkup_state import Checkup, expect


def log(checkup: Checkup) -> str:
    """Creates a run, sends each log request twice, and checks that everything can be read at once
    and exists once. Returns the result as a text; raises Wrong, or LeftOut if an earlier step
    failed."""
    api, experiment = checkup.api, checkup.fact("experiment")
    now = int(time.time() * 1000)
    made = api.post("runs/create", experiment_id=experiment, start_time=now, run_name="doctor")
    run_id = made["run"]["info"]["run_id"]
    checkup.facts["run"] = run_id
    point = {"key": "loss", "value": 0.5, "timestamp": now, "step": 1}
    batch = {
        "metrics": [{"key": f"m{n}", "value": n, "timestamp": now, "step": 0} for n in range(20)],
        "params": [{"key": f"p{n}", "value": str(n)} for n in range(20)],
        "tags": [{"key": f"t{n}", "value": str(n)} for n in range(5)],
    }
    for _ in range(2):
        api.post("runs/log-metric", run_id=run_id, **point)
        api.post("runs/log-batch", run_id=run_id, **batch)
    data = api.get("runs/get", run_id=run_id)["run"]["data"]
    _equal(data, batch, point)
    history = api.get("metrics/get-history", run_id=run_id, metric_key="loss")["metrics"]
    expect(len(history) == 1, f"one point sent twice is {len(history)} points of the history")
    return f"run {run_id}: 21 metrics, 20 params and 5 tags, each sent twice, are there once"


def _equal(data: dict[str, Any], batch: dict[str, Any], point: dict[str, Any]) -> None:
    for kind in ("params", "tags"):
        read = {entry["key"]: entry["value"] for entry in data[kind]}
        lost = [entry["key"] for entry in batch[kind] if read.get(entry["key"]) != entry["value"]]
        expect(not lost, f"{kind} that are not read: {lost}")
    metrics = {entry["key"]: entry["value"] for entry in data["metrics"]}
    wanted = {entry["key"]: entry["value"] for entry in (*batch["metrics"], point)}
    expect(metrics == wanted, f"the metrics are {metrics}")
