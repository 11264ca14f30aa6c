"""Creates the demo's training runs of a classifier: runs with metric curves, one of which diverges,
and a registered model with versions of the two best runs. The numbers are computed by formulas;
nothing is trained."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Any, Final, NamedTuple

from demo import demo_runs, experiments
from mlcore import reserved_tags
from mlcore.http.api_client import ApiClient
from mlcore.ids import now_ms

EXPERIMENT: Final = "MLflow Demo: training"
MODEL: Final = "mlflow-demo-classifier"
EPOCHS: Final = 40
_EPOCH_MS: Final = 45_000


class Trial(NamedTuple):
    """The settings of one training run of the demo."""

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


def make(client: ApiClient, _experiment_id: str) -> None:
    """Creates the demo's training runs and their registered model. The runs are in an experiment of
    their own, because the UI shows experiments with training runs differently."""
    experiment_id, _ = experiments.find_or_create(client, EXPERIMENT, experiments.TRAINING)
    runs_by_trial = demo_runs.of_experiment(client, experiment_id)
    client.run_in_parallel(
        [
            partial(_log_run, client, experiment_id, trial, runs_by_trial.get(trial.name))
            for trial in TRIALS
            if runs_by_trial.get(trial.name, {}).get("status") in (None, "RUNNING")
        ]
    )
    _register(client, experiment_id)


def remove(client: ApiClient, _experiment_id: str) -> None:
    client.remove("DELETE", "/2.0/mlflow/registered-models/delete", name=MODEL)
    experiments.rename_and_delete(client, EXPERIMENT)


def curve(trial: Trial) -> list[dict[str, float]]:
    """Returns the metrics of each epoch of a demo run, computed from the trial's settings."""
    rng = random.Random(trial.name)  # noqa: S311 -- noise of a curve
    least = 0.18 + 0.9 / (trial.depth + 2) + 0.3 * trial.dropout**2
    points = []
    for epoch in range(EPOCHS):
        fall = math.exp(-epoch * min(trial.rate, 0.004) * 90)
        loss = least + (2.3 - least) * fall + rng.gauss(0, 0.012)
        overfit = max(0.0, (epoch - 18) * 0.004 * (trial.depth / 8) * (1 - 2.5 * trial.dropout))
        if trial.diverges() and epoch > 5:
            loss = float("nan")
        validation_loss = loss + 0.06 + overfit
        accuracy = (
            1 / (1 + math.exp(2.6 * (validation_loss - 0.95))) if not math.isnan(loss) else 0.1
        )
        points.append({"train_loss": loss, "val_loss": validation_loss, "val_accuracy": accuracy})
        if trial.diverges() and epoch > 8:
            break
    return points


def _log_run(
    client: ApiClient, experiment_id: str, trial: Trial, unfinished: dict[str, Any] | None
) -> None:
    """Logs a trial's run.

    Args:
        unfinished: the run that an interrupted call left; logging the same points again has no
            further effect. None creates a run.
    """
    info = unfinished or _create_run(client, experiment_id, trial)
    run_id, began = info["run_id"], int(info["start_time"])
    points = curve(trial)
    metrics: list[dict[str, Any]] = [
        {"key": key, "value": _json(value), "timestamp": began + _EPOCH_MS * step, "step": step}
        for step, values in enumerate(points)
        for key, value in values.items()
    ]
    params = {"learning_rate": trial.rate, "depth": trial.depth, "dropout": trial.dropout}
    client.post(
        "/2.0/mlflow/runs/log-batch",
        run_id=run_id,
        metrics=metrics,
        params=[{"key": key, "value": str(value)} for key, value in params.items()],
    )
    client.post(
        "/2.0/mlflow/runs/update",
        run_id=run_id,
        status="FAILED" if trial.diverges() else "FINISHED",
        end_time=began + _EPOCH_MS * len(points),
    )


def _create_run(client: ApiClient, experiment_id: str, trial: Trial) -> dict[str, Any]:
    began = now_ms() - _EPOCH_MS * (EPOCHS + 8 * TRIALS.index(trial))
    return demo_runs.create(client, experiment_id, trial.name, {"dataset": "garments-60k"}, began)


def _json(value: float) -> float | str:
    return "NaN" if math.isnan(value) else value


def _register(client: ApiClient, experiment_id: str) -> None:
    tags = [
        {"key": "task", "value": "image classification"},
        {"key": reserved_tags.DEMO, "value": "1"},
    ]
    description = "Tells garments apart. Made for the demo: it has no files."
    client.create(
        "/2.0/mlflow/registered-models/create", name=MODEL, description=description, tags=tags
    )
    best = client.post(
        "/2.0/mlflow/runs/search",
        experiment_ids=[experiment_id],
        filter="attributes.status = 'FINISHED'",
        order_by=["metrics.val_accuracy DESC"],
        max_results=2,
    )["runs"]
    answer = client.get("/2.0/mlflow/model-versions/search", filter=f"name = '{MODEL}'")
    versions = [int(version["version"]) for version in answer.get("model_versions", ())]
    for run in best[::-1][len(versions) :]:
        made = client.post(
            "/2.0/mlflow/model-versions/create",
            name=MODEL,
            source=f"{run['info']['artifact_uri']}/model",
            run_id=run["info"]["run_id"],
            description=f"From the run {run['info']['run_name']}.",
        )
        versions.append(int(made["model_version"]["version"]))
    champion = str(max(versions))
    path = "/2.0/mlflow/registered-models/alias"
    client.post(path, name=MODEL, alias="champion", version=champion)
