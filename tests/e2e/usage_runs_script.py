"""Logs runs and traces with MLflow's client, and writes what the client knows of them; run by
test_published_questions.py.

python usage_runs_script.py URL FILE
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import mlflow
from mlflow.entities import AssessmentSource, Metric

URL, FILE = sys.argv[1:]
HOUR = 3_600_000
NOW = time.time_ns() // 1_000_000
STATUSES = ("FINISHED", "FAILED", "FINISHED", "KILLED", "FINISHED")

mlflow.set_tracking_uri(URL)
client = mlflow.MlflowClient(URL)
names = ("asked kept", "asked empty", "asked deleted")
experiments: list[dict[str, Any]] = [
    {"id": client.create_experiment(name), "name": name, "deleted": name.endswith("deleted")}
    for name in names
]
runs: list[dict[str, Any]] = []
for number in range(11):
    experiment = experiments[2 * (number % 3 == 2)]
    start, status = NOW - number * 5 * HOUR, STATUSES[number % len(STATUSES)]
    tags = {"team": f"t{number % 2}", **({"evaluated": "yes"} if number % 4 == 0 else {})}
    run = client.create_run(experiment["id"], start, tags, f"run {number}").info
    points = [Metric("loss", 1 / (step + 1 + number), start + step, step) for step in range(9)]
    client.log_batch(run.run_id, metrics=points)
    end = start + (number + 1) * 7 * 60_000
    client.set_terminated(run.run_id, status, end)
    runs.append(
        {
            "id": run.run_id,
            "name": f"run {number}",
            "experiment": experiment["id"],
            "status": status,
            "start": start,
            "end": end,
            "tags": tags,
            "losses": [point.value for point in points],
        }
    )

mlflow.set_experiment("asked kept")
traces: list[dict[str, Any]] = []
for number in range(6):
    spans = []
    failed = number % 3 == 2
    with mlflow.start_span("agent", span_type="AGENT") as root:
        root.set_inputs({"number": number})
        for kind in ("LLM", "TOOL")[: 1 + number % 2]:
            with mlflow.start_span(f"call {kind}", span_type=kind) as child:
                time.sleep(0.002)
            spans.append(child)
        if number % 2:
            mlflow.update_current_trace(tags={"tool": "search"})
        root.set_outputs("x" * (number + 3))
        if failed:
            root.set_status("ERROR")
    spans.append(root)
    mlflow.flush_trace_async_logging()
    for name, value in (("correct", number % 2 == 0), ("score", number / 2)):
        mlflow.log_feedback(
            trace_id=root.trace_id,
            name=name,
            value=value,
            source=AssessmentSource("HUMAN" if number % 2 else "LLM_JUDGE", "ann"),
        )
    traces.append(
        {
            "id": root.trace_id,
            "failed": failed,
            "tool": "search" if number % 2 else None,
            "response": "x" * (number + 3),
            "correct": number % 2 == 0,
            "source": "HUMAN" if number % 2 else "LLM_JUDGE",
            "spans": [
                {
                    "id": span.span_id,
                    "name": span.name,
                    "kind": span.span_type,
                    "start": span.start_time_ns,
                    "end": span.end_time_ns,
                }
                for span in spans
            ],
        }
    )
client.delete_experiment(experiments[2]["id"])
Path(FILE).write_text(
    json.dumps({"experiments": experiments, "runs": runs, "traces": traces}), encoding="utf-8"
)
sys.stdout.write("ok 3.18.0\n")
