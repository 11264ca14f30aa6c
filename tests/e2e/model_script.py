"""What an ordinary user of MLflow 3 does with logged models, in words that 3.1 to 3.18 know.

    python model_script.py TRACKING_URI EXPERIMENT_NAME

Prints ``ok <client version> <model id>``; any wrong answer ends it with an AssertionError. Works
without scikit-learn, which a skinny client does not have.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException


def refused(code: str, call, *arguments, **more) -> None:
    error_code = "nothing"
    try:
        call(*arguments, **more)
    except MlflowException as error:
        error_code = error.error_code
    assert error_code == code, (call, arguments, error_code)


def main(uri: str, name: str) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient(uri)
    experiment = mlflow.set_experiment(name)
    with mlflow.start_run(run_name="trains") as run:
        model = mlflow.initialize_logged_model(
            name="checkpoint", params={"lr": "0.1"}, tags={"kind": "test"}, model_type="net"
        )
        for step in range(3):
            mlflow.log_metric("loss", 1.0 / (step + 1), step=step, model_id=model.model_id)
        mlflow.log_metrics({"acc": 0.75, "f1": 0.5}, step=3, model_id=model.model_id)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "weights.txt").write_text("1 2 3", encoding="utf-8")
            client.log_model_artifacts(model.model_id, folder)
        ready = mlflow.finalize_logged_model(model.model_id, "READY")
    assert str(ready.status) == "READY", ready
    assert ready.source_run_id == run.info.run_id
    assert ready.artifact_location.endswith(f"/models/{model.model_id}/artifacts")

    logged_model = mlflow.get_logged_model(model.model_id)
    assert (logged_model.name, logged_model.model_type) == ("checkpoint", "net")
    assert logged_model.params == {"lr": "0.1"}
    assert logged_model.tags["kind"] == "test"
    metrics = {(metric.key, metric.step): metric.value for metric in logged_model.metrics or ()}
    assert metrics == {
        ("loss", 0): 1.0,
        ("loss", 1): 0.5,
        ("loss", 2): 1 / 3,
        ("acc", 3): 0.75,
        ("f1", 3): 0.5,
    }, metrics
    assert {metric.run_id for metric in logged_model.metrics or ()} == {run.info.run_id}

    mlflow.set_logged_model_tags(model.model_id, {"stage": "candidate", "kind": "changed"})
    mlflow.delete_logged_model_tag(model.model_id, "stage")
    mlflow.log_model_params({"depth": "3"}, model.model_id)
    logged_model = client.get_logged_model(model.model_id)
    assert logged_model.tags["kind"] == "changed"
    assert "stage" not in logged_model.tags
    assert logged_model.params == {"lr": "0.1", "depth": "3"}

    external = client.create_logged_model(
        experiment.experiment_id, name="agent", params={"lr": "0.2"}, model_type="agent"
    )
    assert str(external.status) == "PENDING", external

    def names(**query) -> list[str]:
        models = mlflow.search_logged_models(
            experiment_ids=[experiment.experiment_id], output_format="list", **query
        )
        return [model.name for model in models]

    assert names() == ["agent", "checkpoint"]
    assert names(filter_string="params.lr = '0.1' AND metrics.loss < 0.4") == ["checkpoint"]
    assert names(filter_string=f"source_run_id = '{run.info.run_id}'") == ["checkpoint"]
    assert names(order_by=[{"field_name": "metrics.acc", "ascending": False}]) == [
        "checkpoint",
        "agent",
    ]
    page = client.search_logged_models([experiment.experiment_id], max_results=1)
    rest = client.search_logged_models(
        [experiment.experiment_id], max_results=1, page_token=page.token
    )
    assert [model.name for model in (*page, *rest)] == ["agent", "checkpoint"]

    logged = client.get_run(run.info.run_id)
    assert logged.data.metrics == {"loss": 1 / 3, "acc": 0.75, "f1": 0.5}
    listed = client.list_logged_model_artifacts(model.model_id)
    assert [file.path for file in listed] == ["weights.txt"], listed
    client.delete_logged_model(external.model_id)
    refused("RESOURCE_DOES_NOT_EXIST", client.get_logged_model, external.model_id)
    assert names() == ["checkpoint"]
    print("ok", mlflow.__version__, model.model_id)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
