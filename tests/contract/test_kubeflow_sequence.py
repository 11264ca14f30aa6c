"""Both clients at once, as they come: after each step each view shows what a simple model of the
two says."""

from __future__ import annotations

import os
import random
from typing import Any, NamedTuple

import pytest

import indexer.app
from tests.contract.api import Api
from tests.contract.conftest import Store, forget
from tests.contract.kubeflow_api import KubeflowApi, properties, typed
from tests.contract.streams import following

STEPS = int(os.environ.get("KUBEFLOW_STEPS", "180"))
NAMES = ("a", "b", "c d")
KEYS = ("x", "y", "z.w")
ALIASES = ("champion", "old")


class Version:
    def __init__(self, number: int, name: str | None, source: str) -> None:
        self.number = number
        self.name = name
        self.source = source
        self.stage = "None"
        self.description = ""
        self.tags: dict[str, Any] = {}
        self.kubeflow_id: str | None = None
        self.artifact: str | None = None


class Model:
    def __init__(self) -> None:
        self.description = ""
        self.tags: dict[str, Any] = {}
        self.versions: dict[int, Version] = {}
        self.last = 0
        self.aliases: dict[str, int] = {}
        self.kubeflow_id: str | None = None


class World(NamedTuple):
    api: Api
    kubeflow: KubeflowApi
    models: dict[str, Model]
    chance: random.Random

    def value(self) -> Any:
        return self.chance.choice([1, 2, 1.0, 2.5, True, False, "1", "text", ""])


def text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def step(world: World) -> str:
    """One operation of either client, and what it means."""
    chance = world.chance
    name = chance.choice(NAMES)
    model = world.models.get(name)
    if model is None:
        return create(world, name)
    operations = [tag_model, tag_version, describe, add_version, add_version, stage, alias]
    operations += [see, archive, replace_properties, move_source]
    if chance.random() < 0.03:
        operations = [rename, remove, remove_version]
    operation = chance.choice(operations)
    operation(world, name, model)
    return operation.__name__


def create(world: World, name: str) -> str:
    model = world.models[name] = Model()
    if world.chance.random() < 0.5:
        world.api.post("registered-models/create", name=name)
    else:
        model.tags = {"x": world.value()}
        model.kubeflow_id = world.kubeflow.model(name, customProperties=properties(**model.tags))[
            "id"
        ]
    return "create"


def tag_model(world: World, name: str, model: Model) -> None:
    key, value = world.chance.choice(KEYS), text(world.value())
    if key in model.tags and world.chance.random() < 0.3:
        call = world.api.ask("DELETE", "registered-models/delete-tag", name=name, key=key)
        assert call.status == 200
        del model.tags[key]
        return
    world.api.post("registered-models/set-tag", name=name, key=key, value=value)
    model.tags[key] = value


def some_version(world: World, model: Model) -> Version | None:
    return world.chance.choice([*model.versions.values()]) if model.versions else None


def tag_version(world: World, name: str, model: Model) -> None:
    version = some_version(world, model)
    if version is not None:
        key, value = world.chance.choice(KEYS), text(world.value())
        fields = {"name": name, "version": str(version.number), "key": key, "value": value}
        world.api.post("model-versions/set-tag", **fields)
        version.tags[key] = value


def describe(world: World, name: str, model: Model) -> None:
    description = f"described {world.chance.random()}"
    if world.chance.random() < 0.5 and model.kubeflow_id:
        world.kubeflow.patch(f"registered_models/{model.kubeflow_id}", description=description)
    else:
        answer = world.api.ask(
            "PATCH", "registered-models/update", name=name, description=description
        )
        assert answer.status == 200
    model.description = description


def add_version(world: World, name: str, model: Model) -> None:
    if len(model.versions) >= 4:
        remove_version(world, name, model)
        return
    number = model.last + 1
    uri = f"s3://elsewhere/{world.chance.random()}"
    if world.chance.random() < 0.5:
        world.api.post("model-versions/create", name=name, source=uri)
        version = Version(number, None, uri)
    else:
        see(world, name, model)
        version_name = f"v{number} of {name}"
        made = world.kubeflow.version(str(model.kubeflow_id), version_name)
        version = Version(number, version_name, "")
        version.kubeflow_id = made["id"]
        if world.chance.random() < 0.7:
            artifact = world.kubeflow.artifact(made["id"], name=name, uri=uri, state="LIVE")
            version.artifact, version.source = artifact["id"], uri
    model.last = number
    model.versions[number] = version


def move_source(world: World, name: str, model: Model) -> None:
    version = some_version(world, model)
    if version is not None and version.artifact is not None:
        uri = f"s3://elsewhere/{world.chance.random()}"
        fields = {"artifactType": "model-artifact", "uri": uri}
        world.kubeflow.patch(f"artifacts/{version.artifact}", **fields)
        version.source = uri


def stage(world: World, name: str, model: Model) -> None:
    version = some_version(world, model)
    if version is not None:
        version.stage = world.chance.choice(["None", "Staging", "Production", "Archived"])
        fields = {"stage": version.stage, "archive_existing_versions": False}
        number = str(version.number)
        world.api.post("model-versions/transition-stage", name=name, version=number, **fields)


def archive(world: World, name: str, model: Model) -> None:
    version = some_version(world, model)
    if version is not None and version.kubeflow_id is not None:
        state = world.chance.choice(["LIVE", "ARCHIVED"])
        world.kubeflow.patch(f"model_versions/{version.kubeflow_id}", state=state)
        if state == "ARCHIVED":
            version.stage = "Archived"
        elif version.stage == "Archived":
            version.stage = "None"


def replace_properties(world: World, name: str, model: Model) -> None:
    values = {key: world.value() for key in KEYS if world.chance.random() < 0.5}
    properties = {key: typed(value) for key, value in values.items()}
    version = some_version(world, model)
    if version is not None and version.kubeflow_id and world.chance.random() < 0.5:
        world.kubeflow.patch(f"model_versions/{version.kubeflow_id}", customProperties=properties)
        version.tags = values
    elif model.kubeflow_id:
        world.kubeflow.patch(f"registered_models/{model.kubeflow_id}", customProperties=properties)
        model.tags = values


def alias(world: World, name: str, model: Model) -> None:
    version = some_version(world, model)
    if version is not None:
        word = world.chance.choice(ALIASES)
        number = str(version.number)
        world.api.post("registered-models/alias", name=name, alias=word, version=number)
        model.aliases[word] = version.number


def rename(world: World, name: str, model: Model) -> None:
    free = [other for other in NAMES if other not in world.models]
    if free:
        world.api.post("registered-models/rename", name=name, new_name=free[0])
        world.models[free[0]] = world.models.pop(name)


def remove(world: World, name: str, model: Model) -> None:
    if model.kubeflow_id and world.chance.random() < 0.5:
        world.kubeflow.delete(f"registered_models/{model.kubeflow_id}")
    else:
        assert world.api.ask("DELETE", "registered-models/delete", name=name).status == 200
    del world.models[name]


def remove_version(world: World, name: str, model: Model) -> None:
    version = some_version(world, model)
    if version is None:
        return
    if version.kubeflow_id and world.chance.random() < 0.5:
        world.kubeflow.delete(f"model_versions/{version.kubeflow_id}")
    else:
        fields = {"name": name, "version": str(version.number)}
        assert world.api.ask("DELETE", "model-versions/delete", **fields).status == 200
    del model.versions[version.number]
    model.aliases = {word: of for word, of in model.aliases.items() if of != version.number}


def see(world: World, name: str, model: Model) -> None:
    """Kubeflow's client looks: what it had not seen gets its numbers, which never change again."""
    shown = world.kubeflow.get("registered_model", name=name)
    assert model.kubeflow_id in (None, shown["id"])
    model.kubeflow_id = shown["id"]
    listed = world.kubeflow.items(f"registered_models/{shown['id']}/versions")
    by_name = {entity["name"]: entity for entity in listed}
    assert len(by_name) == len(listed) == len(model.versions)
    for version in model.versions.values():
        version_entity = by_name[version.name or str(version.number)]
        assert version.kubeflow_id in (None, version_entity["id"])
        version.kubeflow_id = version_entity["id"]
        if version.source:
            path = f"model_versions/{version_entity['id']}/artifacts"
            first = min(world.kubeflow.items(path), key=lambda artifact: int(artifact["id"]))
            assert version.artifact in (None, first["id"])
            version.artifact = first["id"]


def check(world: World) -> None:
    for name in NAMES:
        model = world.models.get(name)
        answer = world.api.ask("GET", "registered-models/get", name=name)
        kubeflow_answer = world.kubeflow.ask("GET", "registered_model", name=name)
        if model is None:
            assert (answer.status, kubeflow_answer.status) == (404, 404)
            continue
        shown = answer.body["registered_model"]
        assert (
            shown.get("description", "")
            == kubeflow_answer.body.get("description", "")
            == model.description
        )
        check_tags(shown, kubeflow_answer.body, model.tags)
        aliases = {alias["alias"]: int(alias["version"]) for alias in shown.get("aliases", ())}
        assert aliases == model.aliases
        model.kubeflow_id = kubeflow_answer.body["id"]
        see(world, name, model)
        for version in model.versions.values():
            check_version(world, name, version)


def check_version(world: World, name: str, version: Version) -> None:
    fields = {"name": name, "version": str(version.number)}
    shown = world.api.get("model-versions/get", **fields)["model_version"]
    entity = world.kubeflow.get(f"model_versions/{version.kubeflow_id}")
    assert (shown["current_stage"], shown["source"]) == (version.stage, version.source)
    assert entity["state"] == ("ARCHIVED" if version.stage == "Archived" else "LIVE")
    check_tags(shown, entity, version.tags)
    if version.artifact is not None:
        assert world.kubeflow.get(f"artifacts/{version.artifact}")["uri"] == version.source


def check_tags(shown: dict[str, Any], entity: dict[str, Any], tags: dict[str, Any]) -> None:
    mlflow_tags = {tag["key"]: tag["value"] for tag in shown.get("tags", ())}
    assert mlflow_tags == {key: text(value) for key, value in tags.items()}
    assert entity["customProperties"] == {key: typed(value) for key, value in tags.items()}


@pytest.mark.parametrize(("indexed_every", "seed"), [(0, 1), (5, 2), (60, 3)])
def test_both_clients_as_they_come(store: Store, indexed_every: int, seed: int) -> None:
    """Without the indexer, with it, and with one that comes late."""
    world = World(store.api, KubeflowApi(), {}, random.Random(seed))
    done: list[str] = []
    with following(store) as stream:
        for number in range(STEPS):
            done.append(step(world))
            if indexed_every and number % indexed_every == 0:
                assert indexer.app.index(stream.fresh()) is None
            if number % 5 == 0 or number == STEPS - 1:
                forget()
                try:
                    check(world)
                except AssertionError as error:
                    raise AssertionError(f"after step {number} {done[-6:]}: {error}") from error
    assert len(set(done)) >= 10
