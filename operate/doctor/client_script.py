"""Uses a server with MLflow's client: python client_script.py TRACKING_URI EXPERIMENT_ID

It imports nothing of this product, because it runs with any interpreter that has mlflow.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import tempfile
from pathlib import Path

import mlflow
from mlflow import MlflowClient

SIZE = 12_000_000


def main(uri: str, experiment: str) -> None:
    """Logs a large file and a metric with MLflow's client, and reads both back."""
    mlflow.set_tracking_uri(uri)
    client = MlflowClient()
    run = client.create_run(experiment).info.run_id
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "large.bin")
        source.write_bytes(random.Random(0).randbytes(SIZE))  # noqa: S311 -- content, not a secret
        client.log_artifact(run, str(source), "files")
        back = client.download_artifacts(run, "files/large.bin", tempfile.mkdtemp(dir=folder))
        if _digest(Path(back)) != _digest(source):
            sys.exit("the file came back changed")
    client.log_metric(run, "loss", 0.25)
    client.set_terminated(run)
    if client.get_run(run).data.metrics != {"loss": 0.25}:
        sys.exit("the metric is not read")
    size = f"{SIZE // 1_000_000} MB"
    print(f"mlflow {mlflow.__version__} sent and took back {size}, logged a metric")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    main(*sys.argv[1:])
