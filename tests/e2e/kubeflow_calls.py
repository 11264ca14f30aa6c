"""All that Kubeflow's ``model-registry`` client offers, against a server that others use too.

    python kubeflow_calls.py URL NAME [TOKEN]

Where the client knows experiments, NAME is one with a run of MLflow's. Prints ``ok <client
version>``; any wrong answer ends it with an AssertionError.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterable
from importlib.metadata import version
from typing import Any

from model_registry import ModelRegistry
from model_registry.exceptions import StoreError
from model_registry.types import (
    Artifact,
    DocArtifact,
    ListOptions,
    ModelArtifact,
    ModelVersion,
    RegisteredModel,
)
from model_registry.types.contexts import ModelVersionState, RegisteredModelState

VERSION = version("model-registry")
FORMAT = {"model_format_name": "onnx", "model_format_version": "1"}


def refused(call: Callable[[], Any], kind: type[Exception] = StoreError) -> Exception:
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{call} was not refused")


def models(registry: ModelRegistry, name: str) -> None:
    given = {
        **FORMAT,
        "storage_key": "key",
        "storage_path": "path",
        "service_account_name": "account",
        "model_source_kind": "kfp",
        "model_source_class": "pipelinerun",
        "model_source_group": "group",
        "model_source_id": "id",
        "model_source_name": "source",
    }
    model = registry.register_model(
        f"{name} model",
        "s3://elsewhere/model",
        version="v1: né/1",
        author="somebody",
        owner="owner",
        version_description="of version",
        metadata={"i": 1, "d": 1.0, "s": "1", "b": False, "né": "é"},
        **given,
    )
    assert (model.owner, model.state) == ("owner", RegisteredModelState.LIVE)
    registered_model = registry.get_registered_model(f"{name} model")
    # That there is a version counts as an update of its model.
    registered_model.last_update_time_since_epoch = model.last_update_time_since_epoch
    assert registered_model == model, (registered_model, model)
    made = registry.get_model_version(model.name, "v1: né/1")
    assert (made.author, made.description) == ("somebody", "of version")
    types = {key: type(value) for key, value in made.custom_properties.items()}
    assert types == {"i": int, "d": float, "s": str, "b": bool, "né": str}, types
    artifact = registry.get_model_artifact(model.name, "v1: né/1")
    assert {key: getattr(artifact, key) for key in given} == given
    assert registry.get_registered_model(f"{name} nothing") is None
    assert registry.get_model_version(model.name, "nothing") is None
    refused(lambda: registry.get_model_version(f"{name} nothing", "v"))
    refused(lambda: registry.get_model_artifact(model.name, "nothing"))
    refused(lambda: registry.get_model_versions(f"{name} nothing"))
    refused(lambda: registry.update(RegisteredModel(name="without id")))


def changes(registry: ModelRegistry, name: str) -> None:
    model = registry.get_registered_model(f"{name} model")
    made = registry.get_model_version(model.name, "v1: né/1")
    artifact = registry.get_model_artifact(model.name, "v1: né/1")
    for entity in (model, made, artifact):
        entity.description = "changed"
        entity.external_id = f"{name} {type(entity).__name__}"
        entity.custom_properties = {"new": 1.5}
        changed = registry.update(entity)
        assert (changed.description, changed.external_id) == ("changed", entity.external_id)
        assert changed.custom_properties == {"new": 1.5}
        assert changed.id == entity.id
        assert int(changed.last_update_time_since_epoch) >= int(entity.last_update_time_since_epoch)
    model.state = RegisteredModelState.ARCHIVED
    made.state = ModelVersionState.ARCHIVED
    assert registry.update(model).state == RegisteredModelState.ARCHIVED
    assert registry.update(made).state == ModelVersionState.ARCHIVED
    assert registry.get_registered_model(model.name).state == RegisteredModelState.ARCHIVED
    model.state = RegisteredModelState.LIVE
    made.state = ModelVersionState.LIVE
    assert registry.update(model).state == RegisteredModelState.LIVE
    assert registry.get_model_version(model.name, made.name).state == ModelVersionState.ARCHIVED
    registry.update(made)
    assert registry.get_model_version(model.name, made.name).state == ModelVersionState.LIVE


def pagers(registry: ModelRegistry, name: str) -> None:
    for number in range(4):
        registry.register_model(f"{name} pages", "s3://elsewhere/m", version=f"v{number}", **FORMAT)
    oldest = registry.get_model_version(f"{name} pages", "v0")
    oldest.description = "changed last"
    registry.update(oldest)
    created = [f"v{number}" for number in range(4)]
    updated = ["v1", "v2", "v3", "v0"]
    for size in (1, 3):
        for order, expected in (
            ("order_by_id", created),
            ("order_by_creation_time", created),
            ("order_by_update_time", updated),
        ):
            pager = getattr(registry.get_model_versions(f"{name} pages").page_size(size), order)()
            assert [entry.name for entry in pager.ascending()] == expected, (size, order)
            assert [entry.name for entry in pager.descending()] == expected[::-1], (size, order)
        assert [entry.name for entry in pager.restart().ascending()] == updated, size
    assert [
        model_version.name for model_version in registry.get_model_versions(f"{name} pages")
    ] == created
    everything = [registered_model.id for registered_model in registry.get_registered_models()]
    assert len(everything) == len(set(everything))
    # Others register models meanwhile, so only what is there already must come again.
    again = [model.id for model in registry.get_registered_models().page_size(2).order_by_id()]
    assert [model_id for model_id in again if model_id in everything] == sorted(everything, key=int)


def below(registry: ModelRegistry, name: str) -> None:
    """The client's own API object, which its users call where the class has no word."""
    api, run = registry._api, registry.async_runner
    model = run(api.upsert_registered_model(RegisteredModel(name=f"{name} api", external_id=name)))
    assert run(api.get_registered_model_by_id(model.id)) == model
    assert run(api.get_registered_model_by_params(external_id=name)) == model
    assert run(api.get_registered_model_by_id("2147483647")) is None
    made = run(
        api.upsert_model_version(ModelVersion(name="v", author="a", external_id=name), model.id)
    )
    assert run(api.get_model_version_by_id(made.id)) == made
    assert run(api.get_model_version_by_params(external_id=name)) == made
    assert run(api.get_model_versions(model.id)) == [made]
    document = run(
        api.upsert_model_version_artifact(DocArtifact(name="d", uri="https://x/d"), made.id)
    )
    files = ModelArtifact(name="m", uri="s3://elsewhere/m", external_id=name, **FORMAT)
    artifact = run(api.upsert_model_version_artifact(files, made.id))
    assert run(api.get_model_version_artifacts(made.id)) == [document, artifact]
    assert run(api.get_model_artifacts(made.id)) == [artifact]
    assert run(api.get_model_artifact_by_id(artifact.id)) == artifact
    assert run(api.get_model_artifact_by_params(external_id=name)) == artifact
    assert run(api.get_model_artifact_by_params("m", made.id)) == artifact
    alone = run(api.upsert_model_artifact(ModelArtifact(name="m", uri="s3://elsewhere/alone")))
    alone.uri = "s3://elsewhere/moved"
    assert run(api.upsert_model_artifact(alone)).uri == "s3://elsewhere/moved"
    moved = run(api.upsert_model_version_artifact(alone, made.id))
    assert moved.id == alone.id
    listed: list[Artifact] = run(
        api.get_model_version_artifacts(made.id, ListOptions.order_by_id(is_asc=False))
    )
    assert {entry.id for entry in listed} == {document.id, artifact.id, alone.id}
    assert alone.id in {entry.id for entry in run(api.get_model_artifacts())}


def with_a_runner_of_ones_own(url: str, name: str, token: str | None) -> None:
    done: list[Coroutine[Any, Any, Any]] = []

    def runner(work: Coroutine[Any, Any, Any]) -> Any:
        done.append(work)
        return asyncio.new_event_loop().run_until_complete(work)

    registry = connected(url, token, async_runner=runner)
    assert registry.get_registered_model(f"{name} model").name == f"{name} model"
    assert len(done) >= 2


def experiments(registry: ModelRegistry, name: str) -> None:
    """Those of the client, and MLflow's as it sees them."""
    with registry.start_experiment_run(
        experiment_name=f"{name} own", owner="owner", description="described"
    ) as outer:
        outer.log_param("word", "text", description="a word")
        outer.log_param("number", 2.5)
        outer.log_param("flag", True)
        outer.log_metric("loss", 0.5, step=3, timestamp="1700000000000", description="low")
        outer.log_dataset(
            name="data",
            uri="s3://elsewhere/data",
            source_type="s3",
            source="bucket",
            schema='{"a": "int"}',
            profile='{"rows": 3}',
        )
        assert outer.get_log("params", "word").value == "text"
        assert len(outer.get_logs()) == 5
        refused(lambda: registry.start_experiment_run(experiment_name=f"{name} own"), ValueError)
        with registry.start_experiment_run(nested=True) as inner:
            inner.log_metric("depth", 1)
    assert {log.name for log in outer.get_logs()} == {"word", "number", "flag", "loss", "data"}
    assert registry.get_experiment_run(outer.info.id).experiment_id == outer.info.experiment_id
    nested = registry.get_experiment_run(inner.info.id)
    assert nested.custom_properties == {"kubeflow.parent_run_id": outer.info.id}, nested
    runs = registry.get_experiment_runs(experiment_id=outer.info.experiment_id).page_size(1)
    assert [run.id for run in runs.order_by_id()] == [outer.info.id, inner.info.id]
    logs = logged(registry.get_experiment_run_logs(run_id=outer.info.id).page_size(2))
    assert (logs["word"].value, logs["number"].value, logs["flag"].value) == ("text", 2.5, True)
    assert (logs["loss"].value, logs["loss"].step, logs["loss"].description) == (0.5, 3, "low")
    assert logs["loss"].timestamp == "1700000000000"
    assert (logs["data"].source_type, logs["data"].schema) == ("s3", '{"a": "int"}')
    by_name = registry.get_experiment_run_logs(
        run_name=outer.info.name, experiment_name=f"{name} own"
    )
    assert logged(by_name).keys() == logs.keys()
    with registry.start_experiment_run(
        experiment_name=f"{name} own", run_id=outer.info.id
    ) as again:
        again.log_metric("loss", 0.25, step=4)
    assert again.info.id == outer.info.id
    assert logged(registry.get_experiment_run_logs(run_id=again.info.id))["loss"].value == 0.25
    made = registry.create_experiment(f"{name} made")
    assert registry.create_experiment(f"{name} made").id == made.id
    names = [experiment.name for experiment in registry.get_experiments().page_size(2)]
    assert {name, f"{name} own", f"{name} made"} <= set(names)
    assert len(names) == len(set(names))
    assert list(registry.get_experiment_runs(experiment_id=made.id)) == []


def of_mlflow(registry: ModelRegistry, name: str) -> None:
    (run,) = registry.get_experiment_runs(experiment_name=name)
    logs = logged(registry.get_experiment_run_logs(run_id=run.id))
    assert (logs["acc"].value, logs["acc"].step) == (0.75, 2), logs
    assert logs["rate"].value == "0.1", logs
    assert logs["table"].digest, logs


def logged(logs: Iterable[Any]) -> dict[str, Any]:
    return {log.name: log for log in logs}


def connected(url: str, token: str | None, **more: Any) -> ModelRegistry:
    host, _, port = url.rpartition(":")
    return ModelRegistry(
        host, int(port), author="tester", is_secure=False, user_token=token, **more
    )


def main() -> None:
    url, name, *tokens = sys.argv[1:]
    token = tokens[0] if tokens else None
    warnings.simplefilter("ignore")
    registry = connected(url, token)
    models(registry, name)
    changes(registry, name)
    pagers(registry, name)
    below(registry, name)
    if VERSION == "0.3.14":
        experiments(registry, name)
        of_mlflow(registry, name)
    with_a_runner_of_ones_own(url, name, token)
    sys.stdout.write(f"ok {VERSION}\n")


main()
