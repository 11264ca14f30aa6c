"""What users of Kubeflow's ``model-registry`` client do, in words that 0.3.14 and 0.3.18 know.

    python kubeflow_script.py URL NAME [TOKEN] [--models]

NAME is a model that MLflow registered, with one version; ``--models`` leaves experiments out.
Prints ``ok <client version>``; any wrong answer ends it with an AssertionError.
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version

from model_registry import ModelRegistry
from model_registry.exceptions import StoreError

VERSION = version("model-registry")


def registered_here(registry: ModelRegistry, name: str) -> None:
    """A model from here, for MLflow to find."""
    model = registry.register_model(
        f"{name} kubeflow",
        "s3://elsewhere/model",
        version="one: latest",
        model_format_name="onnx",
        model_format_version="1",
        metadata={"layers": 3, "accuracy": 0.5, "final": True, "note": "text"},
    )
    model_version = registry.get_model_version(model.name, "one: latest")
    assert model_version.custom_properties == {
        "layers": 3,
        "accuracy": 0.5,
        "final": True,
        "note": "text",
    }, model_version
    artifact = registry.get_model_artifact(model.name, "one: latest")
    assert artifact.uri == "s3://elsewhere/model"
    artifact.uri = "s3://elsewhere/moved"
    registry.update(artifact)
    assert registry.get_model_artifact(model.name, "one: latest").uri == "s3://elsewhere/moved"
    model.description = "described"
    assert registry.update(model).description == "described"
    try:
        registry.register_model(
            model.name,
            "s3://elsewhere/model",
            version="one: latest",
            model_format_name="onnx",
            model_format_version="1",
        )
    except StoreError:
        pass
    else:
        raise AssertionError("a version was made twice")


def registered_in_mlflow(registry: ModelRegistry, name: str) -> None:
    model = registry.get_registered_model(name)
    assert model.custom_properties == {"team": "retention"}, model
    model_version = registry.get_model_version(name, "1")
    artifact = registry.get_model_artifact(name, "1")
    assert model_version.name == "1"
    assert (
        artifact.uri.startswith("runs:/")
        or artifact.uri.startswith("models:/")
        or "/" in artifact.uri
    )


def paged(registry: ModelRegistry, name: str) -> None:
    """Lists end although the client asks once more behind their end."""
    for number in range(5):
        registry.register_model(
            f"{name} paged",
            "s3://elsewhere/model",
            version=f"v{number}",
            model_format_name="onnx",
            model_format_version="1",
        )
    newest = registry.get_model_versions(f"{name} paged").page_size(2).order_by_creation_time()
    assert [entry.name for entry in newest.descending()] == [
        f"v{number}" for number in range(4, -1, -1)
    ]
    names = [model.name for model in registry.get_registered_models().page_size(3)]
    assert len(names) == len(set(names))
    assert {name, f"{name} paged", f"{name} kubeflow"} <= set(names)


def tracked(registry: ModelRegistry, name: str) -> None:
    """Experiments, which clients from 0.3.15 on leave to MLflow."""
    with registry.start_experiment_run(experiment_name=f"{name} experiment") as run:
        run.log_param("rate", 0.5)
        for step in range(3):
            run.log_metric("loss", 1 / (step + 1), step=step)
    (listed_run,) = registry.get_experiment_runs(experiment_name=f"{name} experiment")
    logs = {log.name: log for log in registry.get_experiment_run_logs(run_id=listed_run.id)}
    assert logs["loss"].step == 2, logs
    assert logs["rate"].value == 0.5, logs


def main() -> None:
    url, name, *token = [argument for argument in sys.argv[1:] if argument != "--models"]
    host, _, port = url.rpartition(":")
    warnings.simplefilter("ignore")
    registry = ModelRegistry(
        host, int(port), author="tester", is_secure=False, user_token=token[0] if token else None
    )
    registered_in_mlflow(registry, name)
    registered_here(registry, name)
    paged(registry, name)
    if VERSION == "0.3.14" and "--models" not in sys.argv:
        tracked(registry, name)
    sys.stdout.write(f"ok {VERSION}\n")


main()
