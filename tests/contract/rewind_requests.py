"""Requests to rewind runs, and runs to rewind."""

from __future__ import annotations

import itertools
from typing import Any

from runs import app
from tests.contract.api import Answer, called
from tests.contract.conftest import Store

ROUTE = "/api/3.0/mlflow-serverless/runs/rewind"
NUMBERS = itertools.count()


def rewind(run_id: str, **fields: Any) -> Answer:
    return called(app.handler, "POST", ROUTE, {"run_id": run_id, **fields})


def trained(store: Store, steps: int) -> tuple[str, str]:
    experiment = store.api.new_experiment(f"rewound {next(NUMBERS)}")
    run_id = store.api.new_run(experiment)
    for step in range(steps):
        metrics = [
            {"key": key, "value": step, "timestamp": step, "step": step} for key in ("loss", "f1")
        ]
        store.api.post("runs/log-batch", run_id=run_id, metrics=metrics)
    return experiment, run_id
