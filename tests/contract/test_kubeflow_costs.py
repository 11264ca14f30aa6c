"""What Kubeflow's calls cost, whatever the size of the registry; and what they leave when they are
killed."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from mlcore.db.table import table
from tests.contract.api import Api
from tests.contract.conftest import Store, forget
from tests.contract.kubeflow_api import KubeflowApi, properties
from tests.contract.kubeflow_lists import FIRST, more_models
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles


@pytest.mark.parametrize("others", [0, 10_000])
def test_budgets(store: Store, others: int) -> None:
    """However many models there are."""
    api = KubeflowApi()
    if others:
        table.batch_write(more_models(store, others))
    forget()

    def costs(most: int, call: Callable[[], Any]) -> Any:
        forget()
        answer = call()
        assert api.round_trips <= most, (api.round_trips, answer)
        return answer

    model = costs(3, lambda: api.model("m", externalId="x"))
    version = costs(4, lambda: api.version(model["id"], "v"))
    costs(4, lambda: api.version(model["id"], "w", externalId="y"))
    fields = {"name": "a", "uri": "s3://elsewhere/x"}
    artifact = costs(3, lambda: api.artifact(version["id"], **fields))
    costs(2, lambda: api.get("registered_model", name="m"))
    costs(2, lambda: api.get(f"registered_models/{model['id']}"))
    costs(2, lambda: api.get("model_version", name="v", parentResourceId=model["id"]))
    costs(2, lambda: api.get(f"model_versions/{version['id']}"))
    costs(2, lambda: api.get(f"artifacts/{artifact['id']}"))
    costs(3, lambda: api.get("model_artifact", name="a", parentResourceId=version["id"]))
    changed = properties(a=1)
    costs(3, lambda: api.patch(f"registered_models/{model['id']}", customProperties=changed))
    costs(3, lambda: api.patch(f"model_versions/{version['id']}", description="d"))
    if others:
        for query in ({"pageSize": "50"}, {"pageSize": "50", "filterQuery": "state = 'LIVE'"}):
            page = costs(2, partial(api.get, "registered_models", **query))
            assert (page["size"], page["nextPageToken"] != "") == (50, True)
        last = base64.b64encode(f"{FIRST + others - 3}:{FIRST + others - 3}".encode()).decode()
        end = costs(26, lambda: api.get("registered_models", nextPageToken=last))
        assert [int(item["id"]) for item in end["items"]] == [
            FIRST + others - 2,
            FIRST + others - 1,
        ]
    for number in range(98):
        api.version(model["id"], f"n{number}")
    page = costs(2, lambda: api.get(f"registered_models/{model['id']}/versions"))
    assert page["size"] == 100


def test_mlflow_pays_nothing(store: Store) -> None:
    """A model that Kubeflow never saw has no number, and nothing that leads to one."""
    store.api.post("registered-models/create", name="m")
    store.api.post("model-versions/create", name="m", source="s3://elsewhere/x")
    items = store.items()
    assert not [item for item in items if item["PK"]["S"].startswith(("CONTEXT#", "CTR"))]
    # One entry of an index lets lists find what they have not shown yet.
    assert not [item for item in items if {"number", "gsi1pk", "gsi4pk"} & item.keys()]
    assert {item["gsi2pk"]["S"] for item in items if "gsi2pk" in item} == {
        "UNSEEN#default#registered_model",
        "UNSEEN#default#model_version",
    }


class Scene(NamedTuple):
    """Entities that a write is about; their names are the scene's own. The model of the service
    and of what it serves is another's."""

    name: str
    model: str
    version: str
    artifact: str
    environment: str
    experiment: str
    run: str
    service: str = ""
    serve: str = ""


_scenes = itertools.count()


def scene_of(api: KubeflowApi) -> Scene:
    name = f"scene {next(_scenes)}"
    model = api.model(name, externalId=f"{name} x", customProperties=properties(a=1))
    version = api.version(model["id"], "v")
    environment = api.post("serving_environments", name=name)
    fields = {"name": "m", "uri": "s3://elsewhere/x", "state": "LIVE"}
    artifact = api.artifact(version["id"], **fields)
    experiment = api.post("experiments", name=name)
    run = api.post("experiment_runs", name="r", experimentId=experiment["id"])
    param = {"artifactType": "parameter", "name": "p", "value": "first"}
    api.post(f"experiment_runs/{run['id']}/artifacts", **param)
    entities = (model, version, artifact, environment, experiment, run)
    return Scene(name, *(entity["id"] for entity in entities))


def served(api: KubeflowApi) -> Scene:
    """A scene of a model that is served."""
    name = f"scene {next(_scenes)}"
    model = api.model(name)["id"]
    version = api.version(model, "v")["id"]
    environment = api.post("serving_environments", name=name, externalId=f"{name} x")["id"]
    fields = {"registeredModelId": model, "servingEnvironmentId": environment}
    state = {"desiredState": "UNDEPLOYED", "externalId": f"{name} y"}
    service = api.post("inference_services", name="s", **fields, **state)["id"]
    serve = api.post(f"inference_services/{service}/serves", name="one", modelVersionId=version)
    return Scene(name, model, version, "", environment, "", "", service, serve["id"])


Write = Callable[[Scene], tuple[str, str, dict[str, Any]]]
WRITES: dict[str, Write] = {
    "model": lambda s: (
        "POST",
        "registered_models",
        {"name": f"{s.name} new", "externalId": f"{s.name} e"},
    ),
    "version": lambda s: (
        "POST",
        f"registered_models/{s.model}/versions",
        {"name": "new", "registeredModelId": s.model},
    ),
    "artifact": lambda s: (
        "POST",
        f"model_versions/{s.version}/artifacts",
        {"artifactType": "model-artifact", "name": "new", "uri": "s3://elsewhere/n"},
    ),
    "metric": lambda s: (
        "POST",
        f"model_versions/{s.version}/artifacts",
        {"artifactType": "metric", "name": "new", "value": 1},
    ),
    "patched model": lambda s: (
        "PATCH",
        f"registered_models/{s.model}",
        {"externalId": f"{s.name} f", "customProperties": properties(b=2)},
    ),
    "archived version": lambda s: (
        "PATCH",
        f"model_versions/{s.version}",
        {"state": "ARCHIVED", "description": "d"},
    ),
    "moved source": lambda s: (
        "PATCH",
        f"artifacts/{s.artifact}",
        {"artifactType": "model-artifact", "uri": "s3://elsewhere/moved"},
    ),
    "environment": lambda s: (
        "POST",
        "serving_environments",
        {"name": f"{s.name} new", "externalId": f"{s.name} e"},
    ),
    "service": lambda s: (
        "POST",
        "inference_services",
        {"name": "new", "registeredModelId": s.model, "servingEnvironmentId": s.environment},
    ),
    "run": lambda s: ("POST", "experiment_runs", {"name": "new", "experimentId": s.experiment}),
    "archived run": lambda s: (
        "PATCH",
        f"experiment_runs/{s.run}",
        {"state": "ARCHIVED", "externalId": f"{s.name} e", "customProperties": properties(b=2)},
    ),
    "run's metric": lambda s: (
        "POST",
        f"experiment_runs/{s.run}/artifacts",
        {"artifactType": "metric", "name": "new", "value": 1, "step": 1, "timestamp": "7"},
    ),
    "run's parameter": lambda s: (
        "POST",
        f"experiment_runs/{s.run}/artifacts",
        {"artifactType": "parameter", "name": "p", "value": "changed"},
    ),
    "archived experiment": lambda s: (
        "PATCH",
        f"experiments/{s.experiment}",
        {"state": "ARCHIVED", "owner": "o"},
    ),
    "deleted model": lambda s: ("DELETE", f"registered_models/{s.model}", {}),
    "deleted version": lambda s: ("DELETE", f"model_versions/{s.version}", {}),
    "deleted artifact": lambda s: ("DELETE", f"artifacts/{s.artifact}", {}),
    "deleted environment": lambda s: ("DELETE", f"serving_environments/{s.environment}", {}),
    "deleted run": lambda s: ("DELETE", f"experiment_runs/{s.run}", {}),
    "deleted experiment": lambda s: ("DELETE", f"experiments/{s.experiment}", {}),
    "run's document": lambda s: (
        "POST",
        f"experiment_runs/{s.run}/artifacts",
        {"artifactType": "doc-artifact", "name": "new", "uri": "s3://elsewhere/d"},
    ),
}


SERVED: dict[str, Write] = {
    "environment": lambda s: (
        "PATCH",
        f"serving_environments/{s.environment}",
        {"externalId": f"{s.name} e", "customProperties": properties(b=2)},
    ),
    "deployed service": lambda s: (
        "PATCH",
        f"inference_services/{s.service}",
        {"desiredState": "DEPLOYED", "externalId": f"{s.name} e"},
    ),
    "serve": lambda s: (
        "POST",
        f"inference_services/{s.service}/serves",
        {"name": "two", "modelVersionId": s.version},
    ),
    "deleted serve": lambda s: ("DELETE", f"inference_services/{s.service}/serves/{s.serve}", {}),
    "deleted service": lambda s: ("DELETE", f"inference_services/{s.service}", {}),
    "deleted environment": lambda s: ("DELETE", f"serving_environments/{s.environment}", {}),
}


def state_served(api: KubeflowApi, _: Api, scene: Scene) -> list[str]:
    bodies = [
        api.ask("GET", path).body
        for path in (
            f"serving_environments/{scene.environment}",
            f"serving_environments/{scene.environment}/inference_services",
            f"inference_services/{scene.service}",
            f"inference_services/{scene.service}/serves",
        )
    ]
    bodies.append(api.ask("GET", "serving_environment", name=scene.name).body)
    for kind in ("serving_environment", "inference_service"):
        for external in ("x", "y", "e"):
            bodies.append(api.ask("GET", kind, externalId=f"{scene.name} {external}").body)
    return [shown(body, scene) for body in bodies]


def shown(value: Any, scene: Scene) -> Any:
    """Without times, and without the numbers and names that differ from scene to scene."""
    text = json.dumps(value, sort_keys=True).replace(scene.name, "scene")
    text = re.sub(r'"(\w+Id|id)": "\d+"', r'"\1": "0"', text)
    text = re.sub(r"for id \d+", "for id 0", text)
    return re.sub(r'"(\w+TimeSinceEpoch|timestamp)": "\d+"', r'"\1": "0"', text)


def state(api: KubeflowApi, mlflow: Api, scene: Scene) -> list[str]:
    """What both views show of a scene, by consistent reads alone."""
    bodies: list[Any] = []
    for path in (
        f"registered_models/{scene.model}",
        f"registered_models/{scene.model}/versions",
        f"model_versions/{scene.version}",
        f"model_versions/{scene.version}/artifacts",
        f"artifacts/{scene.artifact}",
        f"serving_environments/{scene.environment}",
        f"serving_environments/{scene.environment}/inference_services",
        f"experiments/{scene.experiment}",
        f"experiments/{scene.experiment}/experiment_runs",
        f"experiment_runs/{scene.run}/artifacts",
        f"experiment_runs/{scene.run}/metric_history",
    ):
        bodies.append(api.ask("GET", path).body)
    for kind in ("registered_model", "serving_environment"):
        bodies.append(api.ask("GET", kind, name=f"{scene.name} new").body)
    for kind in ("registered_model", "serving_environment", "experiment_run"):
        for external in ("x", "e", "f"):
            bodies.append(api.ask("GET", kind, externalId=f"{scene.name} {external}").body)
    for version in ("1", "2"):
        answer = mlflow.ask("GET", "model-versions/get", name=scene.name, version=version)
        model_version = answer.body.get("model_version", {})
        bodies.append(
            [model_version.get(name) for name in ("source", "current_stage", "tags", "description")]
        )
    return [shown(body, scene) for body in bodies]


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_is_killed_and_repeated(broken: tuple[Api, Doubles], write: str) -> None:
    kill(broken, scene_of, WRITES[write], state)


@pytest.mark.parametrize("write", SERVED)
def test_a_write_of_what_serves_that_is_killed_and_repeated(
    broken: tuple[Api, Doubles], write: str
) -> None:
    kill(broken, served, SERVED[write], state_served)


def kill(
    broken: tuple[Api, Doubles],
    scene_of: Callable[[KubeflowApi], Scene],
    write: Write,
    state: Callable[[KubeflowApi, Api, Scene], list[str]],
) -> None:
    mlflow, doubles = broken
    api = KubeflowApi()
    scene = scene_of(api)
    forget()
    before = doubles.faulty.kills
    method, path, body = write(scene)
    calm = api.ask(method, path, body or None)
    assert calm.status < 300, calm
    kills = doubles.faulty.kills - before
    expected = state(api, mlflow, scene)
    # To be killed behind a call is to be killed before the next one.
    for nth in range(1, kills + 1):
        scene = scene_of(api)
        method, path, body = write(scene)
        forget()
        doubles.faulty.arm(Fault.DEAD_AFTER, nth)
        first = api.ask(method, path, body or None)
        doubles.faulty.heal()
        if first.status >= 300:
            again = api.ask(method, path, body or None)
            # What had gone through is told to be there, or to be gone.
            done = (calm.status, 404 if method == "DELETE" else 409)
            assert again.status in done, (nth, first, again)
        assert state(api, mlflow, scene) == expected, (nth, first)
