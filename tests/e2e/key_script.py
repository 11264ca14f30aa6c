"""A training whose only login is an API key, in words that clients from 1.30 on know.

    python key_script.py TRACKING_URI KEY USER

Sends the key as a token, then as the password of the user. Prints ``ok <client version>``; any
wrong answer ends it with an error.
"""

from __future__ import annotations

import os
import sys
import uuid

from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from mlflow.version import VERSION


def train(client: MlflowClient) -> str:
    """Creates an experiment with a run, and a model. Returns the run's id."""
    name = uuid.uuid4().hex
    run_id = client.create_run(client.create_experiment(name)).info.run_id
    for step in range(3):
        client.log_metric(run_id, "loss", step / 8, step=step)
    client.log_param(run_id, "rate", "0.1")
    client.set_terminated(run_id)
    client.create_registered_model(name)
    client.create_model_version(name, "s3://elsewhere/model", run_id)
    run = client.get_run(run_id)
    assert (run.info.status, run.data.metrics["loss"]) == ("FINISHED", 0.25), run
    assert len(client.get_metric_history(run_id, "loss")) == 3
    return run_id


def main(uri: str, key: str, user: str) -> None:
    client = MlflowClient(uri)
    os.environ["MLFLOW_TRACKING_TOKEN"] = key
    first = train(client)
    del os.environ["MLFLOW_TRACKING_TOKEN"]
    os.environ["MLFLOW_TRACKING_USERNAME"] = user
    os.environ["MLFLOW_TRACKING_PASSWORD"] = key
    train(client)
    for wrong in (key[:-1], key + "A", ""):
        os.environ["MLFLOW_TRACKING_PASSWORD"] = wrong
        message = ""
        try:
            client.get_run(first)
        except MlflowException as error:
            message = str(error)
        assert "401" in message or "not authenticated" in message, message
    sys.stdout.write(f"ok {VERSION}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
