"""What users of the model registry do, in words that every version from 2.9 to 3.18 knows.

    python registry_script.py TRACKING_URI NAME

Prints ``ok <client version> <model name>``; any wrong answer ends it with an AssertionError.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # 2.9's artifacts module names a deprecated package
    import mlflow.artifacts


def refused(code: str, call, *arguments, **more) -> None:
    error_code = "nothing"
    try:
        call(*arguments, **more)
    except MlflowException as error:
        error_code = error.error_code
    assert error_code == code, (call, arguments, error_code)


def registered_from_a_run(client: MlflowClient, name: str) -> str:
    """`mlflow.register_model` on files of a run, twice, and the files through every URI."""
    mlflow.set_experiment(f"{name} training")
    with mlflow.start_run() as run, tempfile.TemporaryDirectory() as folder:
        Path(folder, "MLmodel").write_text("flavors: {}\n", encoding="utf-8")
        Path(folder, "weights.txt").write_text("1 2 3", encoding="utf-8")
        mlflow.log_artifacts(folder, "net")
    uri = f"runs:/{run.info.run_id}/net"
    for number in (1, 2):
        made = mlflow.register_model(uri, name, tags={"made": f"no. {number}"})
        assert (made.name, int(made.version)) == (name, number), made
        assert made.run_id == run.info.run_id
        assert made.source == f"{run.info.artifact_uri}/net", made.source
        assert made.status == "READY", made.status
    for version in "12":
        assert client.get_model_version_download_uri(name, version) == made.source
    return run.info.run_id


def loads(uri: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=folder))
        assert Path(path, "weights.txt").read_text(encoding="utf-8") == "1 2 3", uri


def stages(client: MlflowClient, name: str) -> None:
    warnings.simplefilter("ignore", FutureWarning)  # stages are deprecated since 2.9
    moved = client.transition_model_version_stage(name, "1", "Production")
    assert moved.current_stage == "Production"
    loads(f"models:/{name}/Production")
    client.transition_model_version_stage(name, "2", "production", archive_existing_versions=True)
    assert client.get_model_version(name, "1").current_stage == "Archived"
    client.transition_model_version_stage(name, "1", "Staging")
    latest = client.get_latest_versions(name)
    assert {(version.current_stage, int(version.version)) for version in latest} == {
        ("Staging", 1),
        ("Production", 2),
    }, latest
    [only] = client.get_latest_versions(name, ["staging"])
    assert int(only.version) == 1
    refused("INVALID_PARAMETER_VALUE", client.get_latest_versions, name, ["nowhere"])
    refused("INVALID_PARAMETER_VALUE", client.transition_model_version_stage, name, "1", "nowhere")


def aliases_and_tags(client: MlflowClient, name: str) -> None:
    client.set_registered_model_alias(name, "champion", "1")
    client.set_registered_model_alias(name, "Challenger", "2")
    client.set_registered_model_alias(name, "best", "2")
    aliases = client.get_registered_model(name).aliases
    assert {alias: int(number) for alias, number in aliases.items()} == {
        "champion": 1,
        "Challenger": 2,
        "best": 2,
    }
    assert sorted(client.get_model_version(name, "2").aliases) == ["Challenger", "best"]
    loads(f"models:/{name}@champion")
    client.set_registered_model_alias(name, "champion", "2")
    assert int(client.get_model_version_by_alias(name, "champion").version) == 2
    client.delete_registered_model_alias(name, "best")
    client.delete_registered_model_alias(name, "best")
    refused("INVALID_PARAMETER_VALUE", client.get_model_version_by_alias, name, "best")
    refused("INVALID_PARAMETER_VALUE", client.set_registered_model_alias, name, "v1", "1")
    refused("INVALID_PARAMETER_VALUE", client.set_registered_model_alias, name, "latest", "1")
    refused("RESOURCE_DOES_NOT_EXIST", client.set_registered_model_alias, name, "none", "9")

    client.set_registered_model_tag(name, "team", "vision")
    client.set_registered_model_tag(name, "gone", "1")
    client.delete_registered_model_tag(name, "gone")
    client.set_model_version_tag(name, "1", "checked", "é☃")
    client.set_model_version_tag(name, version="2", key="gone", value="1")
    client.delete_model_version_tag(name, "2", "gone")
    client.set_model_version_tag(name, key="staged", value="1", stage="Production")
    assert client.get_registered_model(name).tags == {"kind": "test", "team": "vision"}
    assert client.get_model_version(name, "1").tags == {"made": "no. 1", "checked": "é☃"}
    assert client.get_model_version(name, "2").tags == {"made": "no. 2", "staged": "1"}


def searches(client: MlflowClient, name: str, run_id: str) -> None:
    for number, tag in enumerate(("a", "b", "a")):
        client.create_registered_model(f"{name} other {number}", {"kind": tag}, f"no. {number}")

    def names(filter_string: str, **more) -> list[str]:
        registered_models = client.search_registered_models(filter_string=filter_string, **more)
        return [
            registered_model.name.removeprefix(name).removeprefix(" other ")
            for registered_model in registered_models
        ]

    def versions(filter_string: str, **more) -> list[tuple[str, int]]:
        model_versions = client.search_model_versions(filter_string, **more)
        return [
            (model_version.name.removeprefix(name), int(model_version.version))
            for model_version in model_versions
        ]

    assert names(f"name LIKE '{name}%'") == ["", "0", "1", "2"]
    assert names(f"name ILIKE '{name.upper()} OTHER%'", order_by=["name DESC"]) == ["2", "1", "0"]
    assert names(f"name = '{name}'") == [""]
    assert names(f"name LIKE '{name}%' AND tags.kind = 'a'") == ["0", "2"]
    assert names(f"name LIKE '{name}%' AND tags.`kind` != 'a'") == ["", "1"]
    newest = names(f"name LIKE '{name}%'", order_by=["last_updated_timestamp DESC"])
    assert newest == ["2", "1", "0", ""], newest
    page = client.search_registered_models(f"name LIKE '{name}%'", max_results=3)
    rest = client.search_registered_models(
        f"name LIKE '{name}%'", max_results=3, page_token=page.token
    )
    assert (len(page), len(rest), bool(rest.token)) == (3, 1, False)
    assert versions(f"name = '{name}'") == [("", 1), ("", 2)]  # changed last, first
    assert versions(f"name = '{name}'", order_by=["version_number DESC"]) == [("", 2), ("", 1)]
    assert versions(f"run_id = '{run_id}' AND tags.made = 'no. 1'") == [("", 1)]
    assert versions(f"run_id IN ('{run_id}', 'other')", max_results=1) == [("", 1)]
    source = client.get_model_version(name, "1").source
    assert versions(f"source_path = '{source}' AND name LIKE '{name}'") == [("", 1), ("", 2)]
    refused("INVALID_PARAMETER_VALUE", client.search_registered_models, "stage = 'x'")
    refused("INVALID_PARAMETER_VALUE", client.search_model_versions, "name > 'x'")
    refused("INVALID_PARAMETER_VALUE", client.search_registered_models, order_by=["nothing"])
    for number in range(3):
        client.delete_registered_model(f"{name} other {number}")
    assert names(f"name LIKE '{name}%'") == [""]


def main(uri: str, name: str) -> None:
    mlflow.set_tracking_uri(uri)
    client = MlflowClient(uri)
    made = client.create_registered_model(name, {"kind": "test"}, "first words")
    assert (made.name, made.description, made.tags) == (name, "first words", {"kind": "test"})
    assert made.latest_versions == []
    refused("RESOURCE_ALREADY_EXISTS", client.create_registered_model, name)
    refused("INVALID_PARAMETER_VALUE", client.create_registered_model, "")
    assert client.update_registered_model(name, "é☃").description == "é☃"

    run_id = registered_from_a_run(client, name)
    loads(f"models:/{name}/1")
    loads(f"models:/{name}/latest")
    stages(client, name)
    aliases_and_tags(client, name)
    described = client.update_model_version(name, "1", "the first one")
    assert described.description == "the first one"
    searches(client, name, run_id)

    client.rename_registered_model(name, f"{name} renamed")
    renamed = client.get_registered_model(f"{name} renamed")
    assert renamed.name == f"{name} renamed"
    assert {latest_version.name for latest_version in renamed.latest_versions} == {
        f"{name} renamed"
    }
    refused("RESOURCE_DOES_NOT_EXIST", client.get_registered_model, name)
    assert client.get_model_version(f"{name} renamed", "1").description == "the first one"
    assert int(client.get_model_version_by_alias(f"{name} renamed", "champion").version) == 2
    loads(f"models:/{name} renamed@champion")
    client.rename_registered_model(f"{name} renamed", name)

    client.delete_model_version(name, "2")
    refused("RESOURCE_DOES_NOT_EXIST", client.get_model_version, name, "2")
    refused("INVALID_PARAMETER_VALUE", client.get_model_version_by_alias, name, "champion")
    third = client.create_model_version(name, f"runs:/{run_id}/net", run_id)
    assert int(third.version) == 3
    client.delete_registered_model(name)
    refused("RESOURCE_DOES_NOT_EXIST", client.get_registered_model, name)
    refused("RESOURCE_DOES_NOT_EXIST", client.get_model_version, name, "1")
    refused("RESOURCE_DOES_NOT_EXIST", client.delete_registered_model, name)
    assert not client.search_model_versions(f"name = '{name}'")
    print("ok", mlflow.__version__, name)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
