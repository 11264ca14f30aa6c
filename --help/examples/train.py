"""Tunes a regressor on scikit-learn's diabetes data, tracks each trial, and searches for the best.

    MLFLOW_TRACKING_URI=http://127.0.0.1:5000 python examples/train.py

Needs mlflow and scikit-learn; downloads nothing. In addition to metrics and params, each trial logs
files: a report of the estimator, the curve of its error as a figure, its worst predictions as a
table and its residuals as an image. The model of the best trial is logged, loaded from the server
and used for predictions.
"""

from __future__ import annotations

import itertools
import logging
import os
from typing import Any

import mlflow
import numpy as np
from matplotlib.figure import Figure
from mlflow.data.numpy_dataset import from_numpy
from mlflow.models import infer_signature
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.metrics import mean_absolute_error, mean_squared_error
from sklearn.model_selection import train_test_split

EXPERIMENT = "diabetes"
SWEEP: dict[str, list[float]] = {"learning_rate": [0.03, 0.1], "max_depth": [2, 3]}
TREES = 20


def log_files(errors: list[float], expected: Any, predicted: Any) -> None:
    """Logs the error curve, the worst predictions and the residuals as files of the run."""
    figure = Figure(figsize=(5, 3))
    axes = figure.subplots()
    axes.plot(errors)
    axes.set(xlabel="trees", ylabel="squared error")
    mlflow.log_figure(figure, "plots/error.png")

    residuals = expected - predicted
    worst = np.argsort(-np.abs(residuals))[:20]
    table = {"expected": expected[worst].tolist(), "predicted": predicted[worst].tolist()}
    mlflow.log_table(table, "tables/worst.json")

    side = int(np.sqrt(len(residuals)))
    shown = np.abs(residuals[: side * side]).reshape(side, side)
    grey = (255 * shown / shown.max()).astype(np.uint8)
    mlflow.log_image(grey, "plots/residuals.png")


def trial(parameters: dict[str, Any], data: list[Any]) -> None:
    """Trains one model in a run nested in the sweep's run. Logs the error on the test data after
    each tree."""
    x_train, x_test, y_train, y_test = data
    name = " ".join(f"{key}={value}" for key, value in parameters.items())
    with mlflow.start_run(run_name=name, nested=True, tags={"kind": "trial"}):
        model = GradientBoostingRegressor(n_estimators=TREES, random_state=0, **parameters)
        model.fit(x_train, y_train)
        errors = []
        for step, predicted in enumerate(model.staged_predict(x_test)):
            scores = {
                "val_mse": mean_squared_error(y_test, predicted),
                "val_mae": mean_absolute_error(y_test, predicted),
            }
            mlflow.log_metrics(scores, step=step)
            errors.append(scores["val_mse"])
        log_files(errors, y_test, predicted)


def find_files(folder: str) -> list[str]:
    """The paths of all files below a folder of a run, relative to it."""
    names = []
    for entry in mlflow.artifacts.list_artifacts(artifact_uri=folder):
        name = entry.path.rpartition("/")[2]
        below = find_files(f"{folder}/{name}") if entry.is_dir else None
        names += [name] if below is None else [f"{name}/{path}" for path in below]
    return names


def main() -> None:
    mlflow.set_tracking_uri(os.environ.get("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000"))
    experiment = mlflow.set_experiment(EXPERIMENT).experiment_id
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
    print("its files:", *find_files(best.info.artifact_uri))
    model_id = log_best(best.info.run_id, best.data.params, data)
    print(f"its model: {model_id}")


def log_best(run_id: str, parameters: dict[str, str], data: list[Any]) -> str:
    """Logs a model with the best trial's parameters to its run, loads it as a user would, and
    returns its id."""
    x_train, x_test, y_train, y_test = data
    model = GradientBoostingRegressor(
        n_estimators=TREES,
        random_state=0,
        learning_rate=float(parameters["learning_rate"]),
        max_depth=int(parameters["max_depth"]),
    )
    mlflow.autolog(disable=True)
    model.fit(x_train, y_train)
    expected = model.predict(x_test)
    with mlflow.start_run(run_id=run_id):
        # Silences MLflow's warning that loading a pickle runs code: this script wrote the pickle.
        logging.getLogger("mlflow.sklearn").setLevel(logging.ERROR)
        logged = mlflow.sklearn.log_model(
            model,
            name="regressor",
            params=model.get_params(),
            signature=infer_signature(x_test, expected),
            pip_requirements=["scikit-learn"],
            serialization_format="cloudpickle",
        )
        mlflow.log_metric(
            "final_mse", mean_squared_error(y_test, expected), model_id=logged.model_id
        )
    predicted = mlflow.pyfunc.load_model(logged.model_uri).predict(x_test)
    if not np.allclose(predicted, expected):
        raise SystemExit("the loaded model's predictions differ")
    models = mlflow.search_logged_models(
        filter_string=f"source_run_id = '{run_id}' AND metrics.final_mse > 0",
        output_format="list",
    )
    return str(models[0].model_id)


if __name__ == "__main__":
    main()
