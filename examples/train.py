"""Tunes a regressor on scikit-learn's diabetes data, tracks every trial, asks for the best one.

    MLFLOW_TRACKING_URI=http://127.0.0.1:5000 python examples/train.py

Needs mlflow and scikit-learn; downloads nothing. Autologging writes a small report of each
estimator as a file: these stay in the folder ``train-artifacts`` here, only the tracked data go to
the server.
"""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import mlflow
from mlflow.data.numpy_dataset import from_numpy
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error, mean_squared_error
from sklearn.model_selection import train_test_split

EXPERIMENT = "diabetes"
SWEEP: dict[str, list[float]] = {"learning_rate": [0.03, 0.1], "max_depth": [2, 3]}
TREES = 20


def experiment_id(name: str) -> str:
    """The experiment's id; a new one keeps its files in a folder of this machine."""
    known = mlflow.get_experiment_by_name(name)
    if known is not None:
        return str(known.experiment_id)
    folder = Path("train-artifacts").resolve()
    return str(mlflow.create_experiment(name, artifact_location=folder.as_uri()))


def trial(parameters: dict[str, Any], data: list[Any]) -> None:
    """One run inside the sweep's run; the error on the data held back is logged for every tree."""
    x_train, x_test, y_train, y_test = data
    name = " ".join(f"{key}={value}" for key, value in parameters.items())
    with mlflow.start_run(run_name=name, nested=True, tags={"kind": "trial"}):
        model = GradientBoostingRegressor(n_estimators=TREES, random_state=0, **parameters)
        model.fit(x_train, y_train)
        for step, predicted in enumerate(model.staged_predict(x_test)):
            scores = {
                "val_mse": mean_squared_error(y_test, predicted),
                "val_mae": mean_absolute_error(y_test, predicted),
            }
            mlflow.log_metrics(scores, step=step)


def main() -> None:
    mlflow.set_tracking_uri(os.environ.get("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000"))
    experiment = experiment_id(EXPERIMENT)
    mlflow.set_experiment(experiment_id=experiment)
    mlflow.autolog(log_models=False, silent=True)

    features, target = load_diabetes(return_X_y=True)
    data = train_test_split(features, target, random_state=0)
    dataset = from_numpy(features, targets=target, name="diabetes")

    with mlflow.start_run(run_name="sweep", tags={"kind": "sweep"}) as sweep:
        mlflow.log_input(dataset, context="tuning")
        mlflow.log_params({key: str(values) for key, values in SWEEP.items()})
        for values in itertools.product(*SWEEP.values()):
            trial(dict(zip(SWEEP, values, strict=True)), data)

    best = mlflow.search_runs(
        [experiment],
        filter_string=f"tags.mlflow.parentRunId = '{sweep.info.run_id}'",
        order_by=["metrics.val_mse ASC", "attributes.start_time ASC"],
        max_results=1,
        output_format="list",
    )[0]
    print(f"best run: {best.info.run_id} ({best.info.run_name})")
    print(f"mean squared error: {best.data.metrics['val_mse']:.1f}")


if __name__ == "__main__":
    main()
