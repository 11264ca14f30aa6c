"""A classifier in training: runs with curves, one that went wrong, and the best as a registered
model. The numbers are drawn by rules of our own; nothing is trained."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any, Final, NamedTuple

from demo import experiments
from demo.caller import Caller
from mlcore.ids import now_ms

EXPERIMENT: Final = "MLflow Demo: training"
MODEL: Final = "mlflow-demo-classifier"
EPOCHS: Final = 40
_EPOCH_MS: Final = 45_000
_NUMBER: Final = "mlflow.demo.run"


class Trial(NamedTuple):
    """The settings of one run."""

    name: str
    rate: float
    depth: int
    dropout: float

    def diverges(self) -> bool:
        return self.rate > 0.05


TRIALS: Final = (
    Trial("shallow", 0.003, 2, 0.0),
    Trial("baseline", 0.001, 4, 0.1),
    Trial("deeper", 0.001, 8, 0.1),
    Trial("patient", 0.0003, 8, 0.1),
    Trial("regularized", 0.001, 8, 0.3),
    Trial("hasty", 0.1, 4, 0.1),
)


def make(caller: Caller, _experiment_id: str) -> None:
    """In an experiment of its own: the UI shows experiments of models in another way."""
    experiment_id, _ = experiments.ensure(caller, EXPERIMENT, experiments.TRAINING)
    listed = caller.post("/2.0/mlflow/runs/search", experiment_ids=[experiment_id])
    there = {
        tag["value"]
        for run in listed.get("runs", ())
        for tag in run["data"].get("tags", ())
        if tag["key"] == _NUMBER and run["info"]["status"] != "RUNNING"
    }
    missing = [trial for trial in TRIALS if trial.name not in there]
    caller.side_by_side([partial(_run, caller, experiment_id, trial) for trial in missing])
    _register(caller, experiment_id)


def remove(caller: Caller, _experiment_id: str) -> None:
    caller.remove("DELETE", "/2.0/mlflow/registered-models/delete", name=MODEL)
    experiments.discard(caller, EXPERIMENT)


def curve(trial: Trial) -> list[dict[str, float]]:
    """The metrics of each epoch; the same for the same settings."""
    rng = random.Random(trial.name)  # noqa: S311 -- noise of a curve
    least = 0.18 + 0.9 / (trial.depth + 2) + 0.3 * trial.dropout**2
    found = []
    for epoch in range(EPOCHS):
        fall = math.exp(-epoch * min(trial.rate, 0.004) * 90)
        loss = least + (2.3 - least) * fall + rng.gauss(0, 0.012)
        overfit = max(0.0, (epoch - 18) * 0.004 * (trial.depth / 8) * (1 - 2.5 * trial.dropout))
        if trial.diverges() and epoch > 5:
            loss = float("nan")
        kept = loss + 0.06 + overfit
        accuracy = 1 / (1 + math.exp(2.6 * (kept - 0.95))) if not math.isnan(loss) else 0.1
        found.append({"train_loss": loss, "val_loss": kept, "val_accuracy": accuracy})
        if trial.diverges() and epoch > 8:
            break
    return found


def _run(caller: Caller, experiment_id: str, trial: Trial) -> None:
    points = curve(trial)
    began = now_ms() - _EPOCH_MS * (EPOCHS + 8 * TRIALS.index(trial))
    made = caller.post(
        "/2.0/mlflow/runs/create",
        experiment_id=experiment_id,
        run_name=trial.name,
        start_time=began,
        tags=[{"key": "dataset", "value": "garments-60k"}],
    )
    run_id = made["run"]["info"]["run_id"]
    metrics: list[dict[str, Any]] = [
        {"key": key, "value": _json(value), "timestamp": began + _EPOCH_MS * step, "step": step}
        for step, values in enumerate(points)
        for key, value in values.items()
    ]
    params = {"learning_rate": trial.rate, "depth": trial.depth, "dropout": trial.dropout}
    caller.post(
        "/2.0/mlflow/runs/log-batch",
        run_id=run_id,
        metrics=metrics,
        params=[{"key": key, "value": str(value)} for key, value in params.items()],
        # Its own tag comes with all the rest: a run without it is made again.
        tags=[{"key": _NUMBER, "value": trial.name}],
    )
    caller.post(
        "/2.0/mlflow/runs/update",
        run_id=run_id,
        status="FAILED" if trial.diverges() else "FINISHED",
        end_time=began + _EPOCH_MS * len(points),
    )


def _json(value: float) -> float | str:
    return "NaN" if math.isnan(value) else value


def _register(caller: Caller, experiment_id: str) -> None:
    tags = [{"key": "task", "value": "image classification"}, {"key": "mlflow.demo", "value": "1"}]
    description = "Tells garments apart. Made for the demo: it has no files."
    caller.make(
        "/2.0/mlflow/registered-models/create", name=MODEL, description=description, tags=tags
    )
    versions = caller.get("/2.0/mlflow/model-versions/search", filter=f"name = '{MODEL}'")
    if versions.get("model_versions"):
        return
    best = caller.post(
        "/2.0/mlflow/runs/search",
        experiment_ids=[experiment_id],
        filter="attributes.status = 'FINISHED'",
        order_by=["metrics.val_accuracy DESC"],
        max_results=2,
    )["runs"]
    for run in reversed(best):
        run_id = run["info"]["run_id"]
        caller.post(
            "/2.0/mlflow/model-versions/create",
            name=MODEL,
            source=f"{run['info']['artifact_uri']}/model",
            run_id=run_id,
            description=f"From the run {run['info']['run_name']}.",
        )
    caller.post("/2.0/mlflow/registered-models/alias", name=MODEL, alias="champion", version="2")
