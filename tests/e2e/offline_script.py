"""Logs without a server, as on a cluster's node: python offline_script.py FOLDER RUNS."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import mlflow
from mlflow.entities import Metric, Param

folder, runs = Path(sys.argv[1]), int(sys.argv[2])
mlflow.set_tracking_uri(folder.resolve().as_uri())
mlflow.set_experiment("offline")
client = mlflow.MlflowClient()
for number in range(runs):
    with mlflow.start_run(run_name=f"run {number}") as run:
        points = [
            Metric(key, step / (number + 1), 1000 + step, step)
            for key in ("loss", "val/loss")
            for step in range(20)
        ]
        params = [Param(f"p{index}", f"{number}.{index}") for index in range(3)]
        client.log_batch(run.info.run_id, points, params)
        with tempfile.TemporaryDirectory() as made:
            Path(made, "a b ü.txt").write_text("words " * number)
            mlflow.log_artifact(f"{made}/a b ü.txt", "texts")
        if number % 3 == 2:
            mlflow.set_tag("gone", "soon")
    if number % 3 == 2:
        client.delete_run(run.info.run_id)
depth = {"depth": "3"}
model = mlflow.create_external_model(name="net", source_run_id=run.info.run_id, params=depth)
client.create_registered_model("the net")
client.create_model_version("the net", f"{run.info.artifact_uri}/texts", run.info.run_id)
