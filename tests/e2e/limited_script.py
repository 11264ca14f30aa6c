"""A training that sends more than its caller may: MLflow's own client waits as it is told.

    python limited_script.py TRACKING_URI USER PASSWORD

Prints ``ok <client version>``; any wrong answer ends it with an error.
"""

from __future__ import annotations

import os
import sys
import time

from mlflow import MlflowClient
from mlflow.version import VERSION

STEPS = 40
LEAST_SECONDS = 3
"""At four requests a second after the first twenty."""


def main(uri: str, user: str, password: str) -> None:
    os.environ["MLFLOW_TRACKING_USERNAME"] = user
    os.environ["MLFLOW_TRACKING_PASSWORD"] = password
    client = MlflowClient(uri)
    began = time.monotonic()
    run_id = client.create_run("0").info.run_id
    for step in range(STEPS):
        client.log_metric(run_id, "loss", step / 8, step=step)
    assert time.monotonic() - began > LEAST_SECONDS
    history = client.get_metric_history(run_id, "loss")
    assert sorted(point.step for point in history) == list(range(STEPS))
    sys.stdout.write(f"ok {VERSION}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
