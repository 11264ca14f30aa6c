"""One entity of each of Kubeflow's schemas, and the shape that answers must have."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.contract.conftest import Store
from tests.contract.kubeflow_api import OLD, V1, KubeflowApi
from tests.contract.kubeflow_specification import (
    ARTIFACTS,
    BASE,
    DOUBLE,
    ID,
    INT64,
    OPERATIONS,
    SCHEMAS,
    TEXTS,
    TIME,
    Operation,
)

COMMON = ("id", "name", "createTimeSinceEpoch", "lastUpdateTimeSinceEpoch", "customProperties")
MEMBERS: dict[str, tuple[str, Any]] = {
    "MetadataStringValue": ("string_value", str),
    "MetadataIntValue": ("int_value", str),
    "MetadataDoubleValue": ("double_value", int | float),
    "MetadataBoolValue": ("bool_value", bool),
    "MetadataStructValue": ("struct_value", str),
}


def check_error(answered: dict[str, Any], about: object) -> None:
    body = json.loads(answered["body"])
    assert set(body) == {"code", "message"}, (about, answered)
    assert answered["headers"]["content-type"].startswith("application/json"), about
    reasons = {400: "Bad Request", 404: "Not Found", 409: "Conflict", 422: "Bad Request"}
    assert body["code"] == reasons[answered["statusCode"]], (about, answered)


def check_page(body: dict[str, Any], schema: str, api: str) -> None:
    assert set(body) == {"items", "nextPageToken", "pageSize", "size"}
    assert body["size"] == len(body["items"])
    assert isinstance(body["nextPageToken"], str)
    assert isinstance(body["pageSize"], int)
    for item in body["items"]:
        check_entity(item, schema, api, listed=True)


def check_entity(entity: dict[str, Any], schema: str, api: str, *, listed: bool = False) -> None:
    if schema == "Artifact":
        kinds = {SCHEMAS[name].artifact_type: name for name in ARTIFACTS}
        schema = kinds[entity["artifactType"]]
    promised = SCHEMAS[schema]
    rest = dict(entity)
    for name in COMMON:
        if name == "id" and schema == "Metric" and listed and name not in rest:
            continue  # a point of a history has none
        value = rest.pop(name)
        assert isinstance(value, dict if name == "customProperties" else str), (name, entity)
    assert entity.get("id", "1").isdecimal()
    assert entity["createTimeSinceEpoch"].isdecimal()
    if promised.artifact_type:
        assert rest.pop("artifactType") == promised.artifact_type
        for name in ("experimentId", "experimentRunId"):
            assert api == OLD or name not in rest
            assert rest.pop(name, "1").isdecimal()
    assert set(promised.always) <= set(rest), (schema, entity)
    for name, value in rest.items():
        kind = {**BASE, **promised.own}[name]
        assert is_of(kind, value, api), (name, value, entity)
    for value in entity["customProperties"].values():
        member, types = MEMBERS[value["metadataType"]]
        assert set(value) == {"metadataType", member}
        assert isinstance(value[member], types)


def is_of(kind: str | tuple[str, ...], value: Any, api: str) -> bool:
    if isinstance(kind, tuple):
        return value in kind
    if kind == TEXTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind == DOUBLE:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == INT64:
        return isinstance(value, str if api == V1 else int)
    if kind in (TIME, ID):
        return isinstance(value, str) and value.removeprefix("-").isdecimal()
    return isinstance(value, str)


class World(NamedTuple):
    """One entity of each schema, and how another is made."""

    old: KubeflowApi
    new: KubeflowApi
    ids: dict[str, str]

    def path(self, operation: Operation) -> str:
        """Of an entity that is there."""
        return operation.path.replace("{id}", self.ids[parent_of(operation)])

    def references(self) -> dict[str, str]:
        return {
            "registeredModelId": self.ids["registered_models"],
            "servingEnvironmentId": self.ids["serving_environments"],
            "modelVersionId": self.ids["model_versions"],
            "experimentId": self.ids["experiments"],
        }

    def needed(self, schema: str) -> dict[str, Any]:
        """What a body of a schema needs, with a name that is new."""
        made: dict[str, Any] = {"name": f"n{next(NAMES)}"}
        references = self.references()
        for name in SCHEMAS[schema].required:
            made[name] = made["name"] if name == "name" else references.get(name, 1.5)
        if SCHEMAS[schema].artifact_type:
            made["artifactType"] = SCHEMAS[schema].artifact_type
        return made


NAMES = itertools.count()


def parent_of(operation: Operation) -> str:
    return operation.path.partition("/")[0]


@pytest.fixture
def world(store: Store) -> World:
    old, new = KubeflowApi(OLD), KubeflowApi(V1)
    world = World(old, new, {})
    for schema, path in (
        ("RegisteredModel", "registered_models"),
        ("ModelVersion", "model_versions"),
        ("ServingEnvironment", "serving_environments"),
        ("InferenceService", "inference_services"),
        ("Experiment", "experiments"),
        ("ExperimentRun", "experiment_runs"),
        ("ModelArtifact", "model_artifacts"),
    ):
        # What is needed of those that are not made yet is not needed by this one.
        world.ids.update({name: "" for name in ALL_PATHS if name not in world.ids})
        world.ids[path] = old.post(path, **world.needed(schema))["id"]
    world.ids["artifacts"] = world.ids["model_artifacts"]
    return world


ALL_PATHS = tuple(dict.fromkeys(parent_of(each) for each in OPERATIONS))


def schemas_of(operation: Operation) -> tuple[str, ...]:
    if operation.schema != "Artifact":
        return (operation.schema,)
    of_method = {"POST": ARTIFACTS, "PATCH": ("ModelArtifact",)}
    return of_method.get(operation.method, (operation.schema,))


def apis(world: World, operation: Operation) -> Iterator[tuple[str, KubeflowApi]]:
    yield OLD, world.old
    if not operation.old_only:
        yield V1, world.new
