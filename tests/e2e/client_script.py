"""What an ordinary user does with the client, in words that every version from 2.9 to 3.18 knows.

    python client_script.py TRACKING_URI EXPERIMENT_NAME

Prints ``ok <client version> <run id>``; any wrong answer ends it with an AssertionError.
"""

from __future__ import annotations

import sys
import time

import mlflow
from mlflow import MlflowClient
from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag, ViewType
from mlflow.exceptions import MlflowException


def refused(code: str, call, *arguments) -> None:
    error_code = "nothing"
    try:
        call(*arguments)
    except MlflowException as error:
        error_code = error.error_code
    assert error_code == code, (call, arguments, error_code)


def fluent(name: str) -> tuple[str, str]:
    """The fluent interface: experiment, run, everything logged one at a time and in bulk."""
    experiment = mlflow.set_experiment(name)
    mlflow.set_experiment_tag("team", "vision")
    with mlflow.start_run(run_name="first", tags={"kind": "test"}) as run:
        mlflow.log_metric("loss", 0.5)
        for step in range(5):
            mlflow.log_metric("loss", 1.0 / (step + 1), step=step)
        mlflow.log_metrics({"acc": 0.75, "nan": float("nan")}, step=3)
        mlflow.log_param("lr", 0.01)
        mlflow.log_params({"depth": 3, "path/with: signs": "x"})
        mlflow.set_tag("note", "é☃")
        mlflow.set_tags({"a": "1", "b": "2"})
        with mlflow.start_run(run_name="inner", nested=True):
            mlflow.log_metric("loss", 9.0)
    return experiment.experiment_id, run.info.run_id


def main(uri: str, name: str) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient(uri)
    experiment_id, run_id = fluent(name)

    run = client.get_run(run_id)
    assert run.info.status == "FINISHED", run.info
    assert run.info.experiment_id == experiment_id
    assert run.data.metrics["loss"] == 0.2, run.data.metrics
    assert run.data.metrics["nan"] != run.data.metrics["nan"]
    assert run.data.params == {"lr": "0.01", "depth": "3", "path/with: signs": "x"}
    assert {"kind": "test", "note": "é☃", "a": "1", "b": "2"}.items() <= run.data.tags.items()
    assert run.data.tags["mlflow.runName"] == "first"
    history = client.get_metric_history(run_id, "loss")
    assert sorted((point.step, point.value) for point in history) == sorted(
        [(0, 0.5), *((step, 1.0 / (step + 1)) for step in range(5))]
    ), history

    now = int(time.time() * 1000)
    other = client.create_run(experiment_id, tags={"mlflow.runName": "second"})
    client.log_batch(
        other.info.run_id,
        metrics=[Metric("loss", float(step), now, step) for step in range(300)],
        params=[Param(f"p{number}", str(number)) for number in range(50)],
        tags=[RunTag("kind", "batch")],
    )
    dataset = Dataset("data", "d1g357", "local", "{}")
    context = InputTag("mlflow.data.context", "training")
    client.log_inputs(other.info.run_id, [DatasetInput(dataset, [context])])
    client.set_terminated(other.info.run_id, "FAILED")
    fetched = client.get_run(other.info.run_id)
    assert fetched.info.status == "FAILED"
    assert fetched.data.metrics == {"loss": 299.0}
    assert len(fetched.data.params) == 50
    assert fetched.inputs is not None
    assert fetched.inputs.dataset_inputs[0].dataset.name == "data"
    refused("INVALID_PARAMETER_VALUE", client.log_param, run_id, "lr", "other")
    refused("RESOURCE_DOES_NOT_EXIST", client.get_run, "0" * 32)
    refused("RESOURCE_ALREADY_EXISTS", client.create_experiment, name)

    def names(filter_string: str, *order: str) -> list[str]:
        runs = client.search_runs([experiment_id], filter_string, order_by=list(order))
        return [run.data.tags["mlflow.runName"] for run in runs]

    assert names("", "metrics.loss ASC") == ["first", "inner", "second"]
    assert names("metrics.loss < 1 AND params.lr = '0.01'") == ["first"]
    assert names("tags.kind = 'batch' AND attributes.status = 'FAILED'") == ["second"]
    assert names("attributes.run_name LIKE '%n%'", "attributes.run_name DESC") == [
        "second",
        "inner",
    ]
    page = client.search_runs([experiment_id], max_results=2)
    rest = client.search_runs([experiment_id], max_results=2, page_token=page.token)
    assert (len(page), len(rest), bool(rest.token)) == (2, 1, False)

    by_name = client.get_experiment_by_name(name)
    assert by_name is not None
    assert by_name.experiment_id == experiment_id
    experiments = client.search_experiments(filter_string=f"name = '{name}'")
    assert experiments == [] or experiments[0].tags == {"team": "vision"}  # this list may lag
    client.delete_run(other.info.run_id)
    assert len(client.search_runs([experiment_id])) == 2
    assert len(client.search_runs([experiment_id], run_view_type=ViewType.DELETED_ONLY)) == 1
    client.restore_run(other.info.run_id)
    client.delete_tag(run_id, "a")
    assert "a" not in client.get_run(run_id).data.tags
    client.rename_experiment(experiment_id, name + " renamed")
    client.delete_experiment(experiment_id)
    assert client.get_experiment(experiment_id).lifecycle_stage == "deleted"
    client.restore_experiment(experiment_id)
    assert client.get_run(run_id).info.lifecycle_stage == "active"
    print("ok", mlflow.__version__, run_id)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
