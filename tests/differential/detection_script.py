"""Detects issues with MLflow's own pipeline, as its server's job does.

python detection_script.py URI EXPERIMENT CATEGORY,… TRACE,…
"""

from __future__ import annotations

import json
import sys

import mlflow
from mlflow.client import MlflowClient
from mlflow.genai.discovery.job import _detect_issues_into_run


def main() -> None:
    uri, experiment_id, categories, traces = sys.argv[1:]
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment(experiment_id=experiment_id)
    client = MlflowClient()
    tags = {"mlflow.runType": "issue_detection"}
    run_id = client.create_run(experiment_id, tags=tags).info.run_id
    result = _detect_issues_into_run(
        client,
        experiment_id,
        traces.split(","),
        categories.split(","),
        run_id,
        "openai:/gpt-4o-mini",
    )
    sys.stdout.write(json.dumps({"run_id": run_id, "result": result}) + "\n")


if __name__ == "__main__":
    main()
