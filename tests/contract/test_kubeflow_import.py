"""A Kubeflow registry comes over as it is: once, again, and after a kill at any write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore.db.table import table
from operate.transfer import command, kubeflow_transfer
from operate.transfer.command import TransferOptions
from operate.transfer.mlflow_client import SourceFailed
from tests.contract.api import Api
from tests.contract.conftest import Store, pointed
from tests.contract.kubeflow_api import KubeflowApi, properties
from tests.engines import Engine, create_table

LISTS = ("registered_models", "serving_environments", "experiments", "artifacts")
BELOW = {
    "registered_models": ("versions",),
    "model_versions": ("artifacts",),
    "serving_environments": ("inference_services",),
    "inference_services": ("serves",),
    "experiments": ("experiment_runs",),
    "experiment_runs": ("artifacts", "metric_history"),
}
CALLED = {"versions": "model_versions"}
WRITES = ("transact", "update", "put", "delete", "batch_write")


class Killed(BaseException):
    """Nothing of the import lives on."""


class Recorded:
    """Stands for a server: answers, two entities to a page, what the registry said before."""

    workspace = "default"
    lists: dict[str, list[dict[str, Any]]] = {}

    def __init__(self, url: str, files: Path | None = None) -> None:
        assert (url, files) == ("http://old", None)

    def get(self, path: str, /, **parameters: Any) -> dict[str, Any]:
        name = path.removeprefix("api/model_registry/v1alpha3/")
        if name not in self.lists:
            raise SourceFailed(404, "Not Found")
        at = int(parameters.get("nextPageToken", "0"))
        entities = self.lists[name]
        token = str(at + 2) if at + 2 < len(entities) else ""
        return {"items": entities[at : at + 2], "nextPageToken": token}


def every_list(kubeflow: KubeflowApi) -> dict[str, list[dict[str, Any]]]:
    """Every list of a registry."""
    results: dict[str, list[dict[str, Any]]] = {}
    waiting = list(LISTS)
    while waiting:
        path = waiting.pop()
        results[path] = kubeflow.items(path)
        kind = CALLED.get(path.rpartition("/")[2], path.rpartition("/")[2])
        waiting += [
            f"{kind}/{entity['id']}/{below}"
            for entity in results[path]
            for below in BELOW.get(kind, ())
        ]
    return results


def populate(kubeflow: KubeflowApi) -> None:
    typed = properties(whole=7, real=0.5, yes=True, words="a b")
    versions = []
    for name in ("first", "second"):
        model = kubeflow.model(
            name, externalId=f"x-{name}", owner="ann", language=["en"], customProperties=typed
        )
        for number in (1, 2, 3):
            version = kubeflow.version(
                model["id"],
                f"v {number}",
                author="bob",
                state="ARCHIVED" if number == 2 else "LIVE",
                customProperties=typed,
            )
            versions.append(version)
            uri = f"s3://elsewhere/{name}/{number}"
            kubeflow.artifact(version["id"], name=name, uri=uri, modelFormatName="onnx")
    document = kubeflow.artifact(
        versions[0]["id"], artifactType="doc-artifact", name="card", uri="s3://elsewhere/card"
    )
    shared = {"artifactType": "doc-artifact", "id": document["id"], "name": "card"}
    kubeflow.post(f"model_versions/{versions[1]['id']}/artifacts", **shared)
    # A version gets artifacts of others, of which one is called as its own are.
    for kind, name in (("doc-artifact", "card"), ("model-artifact", "first")):
        twin = {"artifactType": kind, "name": name}
        made = kubeflow.post("artifacts", **twin, uri=f"s3://elsewhere/twin of {name}")
        kubeflow.post(f"model_versions/{versions[0]['id']}/artifacts", **twin, id=made["id"])
    kubeflow.post("model_artifacts", name="alone", externalId="x-alone", uri="s3://elsewhere/y")
    environment = kubeflow.post("serving_environments", name="prod", description="d")
    service = kubeflow.post(
        "inference_services",
        name="answers",
        registeredModelId=versions[0]["registeredModelId"],
        modelVersionId=versions[2]["id"],
        servingEnvironmentId=environment["id"],
        runtime="triton",
        desiredState="UNDEPLOYED",
    )
    serve = {"name": "s", "modelVersionId": versions[2]["id"], "lastKnownState": "RUNNING"}
    kubeflow.post(f"inference_services/{service['id']}/serves", **serve)
    experiment = kubeflow.post("experiments", name="trial", owner="ann", customProperties=typed)
    for name, state in (("r1", "LIVE"), ("r2", "ARCHIVED")):
        run = kubeflow.post(
            "experiment_runs",
            name=name,
            experimentId=experiment["id"],
            startTimeSinceEpoch="1700000000000",
            status="FINISHED",
            customProperties=typed,
        )
        path = f"experiment_runs/{run['id']}/artifacts"
        for step in (1, 2):
            point = {"value": step / 4, "step": step, "timestamp": str(1_700_000_000_000 + step)}
            kubeflow.post(path, artifactType="metric", name="loss", **point)
        unknown = {"value": 0, "step": 3, "timestamp": "1700000000003"}
        nan = properties(is_nan=True)
        kubeflow.post(path, artifactType="metric", name="loss", **unknown, customProperties=nan)
        kubeflow.post(path, artifactType="parameter", name="lr", value="0.1")
        kubeflow.post(path, artifactType="dataset-artifact", name="rows", digest="d1")
        if state != "LIVE":
            kubeflow.patch(f"experiment_runs/{run['id']}", state=state)
    kubeflow.patch(f"experiments/{experiment['id']}", state="ARCHIVED")


@pytest.fixture
def target(
    store: Store, table_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Api, dict[str, Any]]]:
    """An empty table, and what a registry in another has told."""
    kubeflow = KubeflowApi()
    populate(kubeflow)
    Recorded.lists = every_list(kubeflow)
    monkeypatch.setattr(command, "Server", Recorded)
    with pointed(table_engine.endpoint, create_table(table_engine.endpoint)) as api:
        yield api, Recorded.lists


def transfer(*, write: bool = True) -> int:
    parts = ("runs", "models", "artifacts")
    journal: Path | None = None
    return kubeflow_transfer.run(TransferOptions("http://old", [], parts, journal, write))


def plain(lists: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What is told of each entity but for its number, those of others, and times of changes."""
    results = []
    for path, entities in lists.items():
        kind = path.rpartition("/")[2]
        for entity in entities:
            if entity["name"] == "Default":
                continue
            fields = {
                name: value
                for name, value in entity.items()
                if not name.endswith("Id") or name == "externalId"
            }
            for name in ("id", "lastUpdateTimeSinceEpoch"):
                fields.pop(name, None)
            if "artifactType" in fields or kind == "metric_history":
                fields.pop("createTimeSinceEpoch", None)
            if fields.get("artifactType") in ("metric", "parameter", "dataset-artifact"):
                # What MLflow knows too is LIVE, and has empty words, where Kubeflow said nothing.
                fields.pop("state", None)
                fields = {name: value for name, value in fields.items() if value != ""}
            results.append(f"{kind} {json.dumps(fields, sort_keys=True)}")
    return sorted(results)


def test_a_registry_comes_over_once(
    target: tuple[Api, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    api, lists = target
    assert transfer(write=False) == 1
    assert transfer() == 0, capsys.readouterr()
    kubeflow = KubeflowApi()
    brought = every_list(kubeflow)
    assert plain(brought) == plain(lists)
    # References lead where they led: by names, because numbers are the table's own.
    (service,) = kubeflow.items("inference_services")
    assert kubeflow.get(f"inference_services/{service['id']}/model")["name"] == "first"
    assert kubeflow.get(f"inference_services/{service['id']}/version")["name"] == "v 3"
    model = kubeflow.get("registered_model", externalId="x-first")
    first, second, _ = kubeflow.items(f"registered_models/{model['id']}/versions")
    cards = [
        kubeflow.get("artifact", name="card", parentResourceId=version["id"])["id"]
        for version in (first, second)
    ]
    assert len(set(cards)) == 1
    shown = api.get("model-versions/get", name="first", version="2")["model_version"]
    assert (shown["source"], shown["current_stage"]) == ("s3://elsewhere/first/2", "Archived")

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a second import writes nothing")

    for name in WRITES:
        monkeypatch.setattr(table, name, refused)
    assert transfer() == 0
    assert transfer(write=False) == 0


def test_what_changed_since_comes_too_and_what_is_the_tables_stays(
    target: tuple[Api, dict[str, Any]],
) -> None:
    api, lists = target
    assert transfer() == 0
    api.post("registered-models/set-tag", name="first", key="here", value="stays")
    lists["registered_models"][0]["description"] = "another"
    versions = lists[f"registered_models/{lists['registered_models'][0]['id']}/versions"]
    versions[0]["state"] = "ARCHIVED"
    runs = next(entities for path, entities in lists.items() if path.endswith("/experiment_runs"))
    runs[0]["state"] = "LIVE"  # upstream keeps it in an archived experiment
    runs[0]["owner"] = "eve"
    path = f"experiment_runs/{runs[0]['id']}/metric_history"
    lists[path].append({**lists[path][0], "step": 9, "value": 3.0})
    (environment,) = lists["serving_environments"]
    services = lists[f"serving_environments/{environment['id']}/inference_services"]
    services[0]["modelVersionId"] = versions[1]["id"]
    assert transfer(write=False) == 1
    assert transfer() == 0
    kubeflow = KubeflowApi()
    model = kubeflow.get("registered_model", name="first")
    assert model["description"] == "another"
    assert model["customProperties"]["here"]["string_value"] == "stays"
    (service,) = kubeflow.items("inference_services")
    assert (
        kubeflow.get(f"inference_services/{service['id']}/version")["name"] == versions[1]["name"]
    )
    assert transfer(write=False) == 0


def test_an_old_registry_has_no_experiments_and_another_server_no_models(
    target: tuple[Api, dict[str, Any]],
) -> None:
    _, lists = target
    del lists["experiments"]
    assert transfer() == 0
    assert {item["name"] for item in KubeflowApi().items("registered_models")} == {
        "first",
        "second",
    }
    lists.clear()
    assert transfer() == 1


def test_killed_at_any_write_it_goes_on(
    target: tuple[Api, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt dies a write later than the one before; what is there then is not made
    again."""
    _, lists = target
    allowed, kills = 0, 0
    while True:
        left = [allowed]
        with monkeypatch.context() as patch:
            for name in WRITES:
                patch.setattr(table, name, dying(getattr(table, name), left))
            try:
                assert transfer() == 0
                break
            except Killed:
                kills += 1
                allowed += 1
    assert kills > 5
    assert plain(every_list(KubeflowApi())) == plain(lists)


def dying(write: Any, left: list[int]) -> Any:
    def attempt(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        result = write(*arguments, **named)
        if left[0] == 0:
            raise Killed  # the last write is done, and nobody learns of it
        return result

    return attempt
