"""An id stays an id: MLflow renames a model between any two requests of a call to Kubeflow's API,
and the call finds the model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.models.registry import ModelHome
from mlcore.repos.kubeflow import archive_expiry
from mlcore.repos.registry import homes
from tests.contract.api import Api
from tests.contract.conftest import Store, examples
from tests.contract.interleaved_calls import interleaved
from tests.contract.kubeflow_api import KubeflowApi

_names = itertools.count()
RENAMES = 3


class Scene(NamedTuple):
    name: str
    model: str
    version: str
    service: str


def scene_of(kubeflow: KubeflowApi) -> Scene:
    name = f"renamed {next(_names)}"
    model = kubeflow.model(name, externalId=name)["id"]
    version = kubeflow.version(model, "v", externalId=name)["id"]
    environment = kubeflow.post("serving_environments", name=name)["id"]
    served = {"registeredModelId": model, "servingEnvironmentId": environment}
    undeployed = kubeflow.post("inference_services", desiredState="UNDEPLOYED", **served)
    return Scene(name, model, version, undeployed["id"])


Sent = tuple[str, str, dict[str, Any] | None, dict[str, str]]
BY_ID: dict[str, Callable[[Scene], Sent]] = {
    "get": lambda s: ("GET", f"registered_models/{s.model}", None, {}),
    "find": lambda s: ("GET", "registered_model", None, {"externalId": s.name}),
    "patch": lambda s: ("PATCH", f"registered_models/{s.model}", {"description": "d"}, {}),
    "delete": lambda s: ("DELETE", f"registered_models/{s.model}", None, {}),
    "get version": lambda s: ("GET", f"model_versions/{s.version}", None, {}),
    "find version": lambda s: ("GET", "model_version", None, {"externalId": s.name}),
    "make version": lambda s: (
        "POST",
        f"registered_models/{s.model}/versions",
        {"name": "new", "registeredModelId": s.model},
        {},
    ),
    "archive version": lambda s: (
        "PATCH",
        f"model_versions/{s.version}",
        {"state": "ARCHIVED"},
        {},
    ),
    "tag version": lambda s: (
        "PATCH",
        f"model_versions/{s.version}",
        {
            "customProperties": {
                "a": {"metadataType": "MetadataStringValue", "string_value": "b"},
            }
        },
        {},
    ),
    "delete version": lambda s: ("DELETE", f"model_versions/{s.version}", None, {}),
    "list versions": lambda s: ("GET", f"registered_models/{s.model}/versions", None, {}),
    "make artifact": lambda s: (
        "POST",
        f"model_versions/{s.version}/artifacts",
        {"artifactType": "model-artifact", "name": "a", "uri": "s3://elsewhere/a"},
        {},
    ),
    "served model": lambda s: ("GET", f"inference_services/{s.service}/model", None, {}),
    "served version": lambda s: ("GET", f"inference_services/{s.service}/version", None, {}),
}


def rename(api: Api, name: str) -> Callable[[], None]:
    """There and back again, so that a name which was left is taken again."""

    def act() -> None:
        for at in range(RENAMES):
            old, new = name, f"{name} moved"
            fields = (
                {"name": old, "new_name": new} if at % 2 == 0 else {"name": new, "new_name": old}
            )
            # 404: the call has deleted the model.
            assert api.ask("POST", "registered-models/rename", **fields).status in (200, 404)

    return act


ORDER = st.lists(st.integers(0, 1), max_size=60)


@pytest.mark.parametrize("call", BY_ID)
@examples(15)
@given(order=ORDER)
def test_a_call_by_id_finds_a_model_that_is_being_renamed(
    shared_store: Store, call: str, order: list[int]
) -> None:
    kubeflow = KubeflowApi()
    scene = scene_of(kubeflow)
    method, path, body, query = BY_ID[call](scene)
    statuses: list[int] = []

    def act() -> None:
        statuses.append(kubeflow.ask(method, path, body, **query).status)

    interleaved(order, [act, rename(shared_store.api, scene.name)])
    assert statuses[0] < 300, statuses


def test_a_call_for_what_is_gone_ends(shared_store: Store) -> None:
    """A model that was deleted is missing, however often it was renamed before."""
    kubeflow = KubeflowApi()
    scene = scene_of(kubeflow)
    rename(shared_store.api, scene.name)()
    kubeflow.delete(f"registered_models/{scene.model}")
    for call in ("get", "patch", "delete", "get version", "make version", "served model"):
        method, path, body, query = BY_ID[call](scene)
        assert kubeflow.ask(method, path, body, **query).status == 404, call


@examples(25)
@given(order=ORDER)
def test_a_model_that_is_being_renamed_is_not_taken_for_deleted(
    shared_store: Store, order: list[int]
) -> None:
    """Neither by what clears a deleted model's partition nor by what lets archived ones expire."""
    kubeflow = KubeflowApi()
    scene = scene_of(kubeflow)
    kubeflow.patch(f"registered_models/{scene.model}", state="ARCHIVED")
    home = keys.registered_model("default", scene.name).pk
    owner = ModelHome.of(table.get(keys.model_home(home)) or {})
    archived: list[bool] = []

    def act() -> None:
        archived.append(archive_expiry.is_archived(archive_expiry.ArchivedKey(home, 0)))
        homes.clear(home, owner.incarnation, executed=True)

    interleaved(order, [act, rename(shared_store.api, scene.name)])
    assert archived == [True]
    assert kubeflow.get(f"model_versions/{scene.version}")["name"] == "v"


def test_a_home_that_two_callers_clear_is_not_owned_again(shared_store: Store) -> None:
    """Also if the second one came before the caller that deleted the model."""
    kubeflow = KubeflowApi()
    scene = scene_of(kubeflow)
    home = keys.registered_model("default", scene.name).pk
    owner = ModelHome.of(table.get(keys.model_home(home)) or {})
    table.delete(keys.registered_model("default", scene.name))
    homes.clear_remains("default", scene.name)
    homes.clear(home, owner.incarnation, executed=True)
    assert homes.owner_of(home) is not None


def test_a_rename_updates_the_versions_in_both_views(shared_store: Store) -> None:
    """Those that Kubeflow knows, and those that it sees later."""
    api, kubeflow = shared_store.api, KubeflowApi()
    scene = scene_of(kubeflow)
    api.post("model-versions/create", name=scene.name, source="s3://elsewhere/x")
    new = f"{scene.name} moved"
    api.post("registered-models/rename", name=scene.name, new_name=new)
    shown = kubeflow.items(f"registered_models/{scene.model}/versions")
    model_versions = [
        api.get("model-versions/get", name=new, version=str(at + 1))["model_version"]
        for at in range(2)
    ]
    times = [model_version["last_updated_timestamp"] for model_version in model_versions]
    assert [int(version["lastUpdateTimeSinceEpoch"]) for version in shown] == times
    assert (
        int(kubeflow.get(f"registered_models/{scene.model}")["lastUpdateTimeSinceEpoch"]) in times
    )
    # Renaming a model to the name that it has is an update, too.
    api.post("registered-models/rename", name=new, new_name=new)
    shown = kubeflow.items(f"registered_models/{scene.model}/versions")
    model_versions = [
        api.get("model-versions/get", name=new, version=str(at + 1))["model_version"]
        for at in range(2)
    ]
    assert [int(version["lastUpdateTimeSinceEpoch"]) for version in shown] == [
        model_version["last_updated_timestamp"] for model_version in model_versions
    ]
    newest = {"orderBy": "LAST_UPDATE_TIME", "sortOrder": "DESC", "pageSize": "2"}
    items = kubeflow.get("model_versions", **newest)["items"]
    assert {item["id"] for item in items} == {version["id"] for version in shown}
    # Also of a model that Kubeflow first sees when MLflow has renamed it.
    api.post("registered-models/create", name=f"{scene.name} unseen")
    api.post("model-versions/create", name=f"{scene.name} unseen", source="s3://elsewhere/x")
    fields = {"name": f"{scene.name} unseen", "new_name": f"{scene.name} seen"}
    api.post("registered-models/rename", **fields)
    model = kubeflow.get("registered_model", name=f"{scene.name} seen")
    (version,) = kubeflow.items(f"registered_models/{model['id']}/versions")
    assert version["lastUpdateTimeSinceEpoch"] == model["lastUpdateTimeSinceEpoch"]
