"""Kubeflow's API against its specification: each operation with what is missing, of the wrong
type, too long, too large or no id."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import kubeflow.app
from tests.contract.kubeflow_api import OLD
from tests.contract.kubeflow_specification import (
    BASE,
    DOUBLE,
    ID,
    INT64,
    OPERATIONS,
    PROPERTIES,
    SCHEMAS,
    TEXT,
    TEXTS,
    TIME,
    Schema,
)
from tests.contract.kubeflow_world import (
    NAMES,
    World,
    apis,
    check_entity,
    check_error,
    check_page,
    parent_of,
    schemas_of,
    world,
)

__all__ = ["world"]

ANYTHING_ELSE = {
    TEXT: (1, 1.5, True, [], {}, ["x"]),
    TEXTS: ("x", 1, {}, [1], [None], True),
    DOUBLE: ("x", True, [], {}, "1.5", 10**400),
    INT64: ("x", 1.5, True, [], {}, 2**63, -(2**63) - 1, "9" * 20, ""),
    TIME: ("x", 1, "1.5", "9" * 20, True, [], {}, "١"),
    ID: ("x", 1, "2147483648", "-2147483649", "1.5", "9" * 30, True, [], {}, "١"),
}
WRONG_PROPERTIES: tuple[Any, ...] = (
    *("x", 1, True, [], [{}]),
    *({"k": value} for value in ("x", 1, [], {}, {"string_value": "x"})),
    *(
        {"k": {"metadataType": f"Metadata{kind}Value", f"{kind.lower()}_value": value}}
        for kind, values in {
            "String": (1, True, [], {}),
            "Int": (1, "x", "1.5", "2147483648", "-2147483649", "", True, None, "9" * 30),
            "Double": ("x", "1.5", True, None, [], 10**400),
            "Bool": ("true", 1, None),
            "Struct": ("%%", 1, {}, None, "bm8="),
            "Proto": ("x",),
            "Other": ("x",),
        }.items()
        for value in values
    ),
    {"k": {"metadataType": 5, "string_value": "x"}},
    {"": {"metadataType": "MetadataStringValue", "string_value": "x"}},
    {"k" * 256: {"metadataType": "MetadataStringValue", "string_value": "x"}},
)


def wrong_bodies(schema: Schema, needed: dict[str, Any], *, patch: bool) -> Iterator[Any]:
    """Bodies of which one thing is wrong, each with the status that tells it."""
    base = {} if patch else needed
    if schema.artifact_type:
        base = {**base, "artifactType": schema.artifact_type}
    for text in ("", " ", "[", "nothing", '{"a": NaN}', "[]", '"x"', "1", "null", "[" * 5000):
        yield text, 400
    if not patch:
        for body in _incomplete(schema, base):
            yield body, 400 if schema.artifact_type else 422
    for body in _mistyped(schema, base, patch=patch):
        yield body, 400
    for name in ("externalId",) if patch else ("externalId", "name"):
        yield {**base, name: "é" * 256}, 400
        yield {**base, name: "a\0b"}, 400
    yield json.dumps({**base, "description": "\ud800"}), 400
    if not schema.artifact_type:
        yield {**base, "unknown": 1}, 400
        for name in schema.fixed if patch else ():
            yield {name: needed.get(name, "1")}, 400
    else:
        for value in ("nothing", "", 1, True, [], {}, None):
            yield {**base, "artifactType": value}, 400


def _incomplete(schema: Schema, base: dict[str, Any]) -> Iterator[Any]:
    for name in schema.required:
        yield {key: value for key, value in base.items() if key != name}
        yield {**base, name: None}
        if isinstance(base[name], str):
            yield {**base, name: ""}


def _mistyped(schema: Schema, base: dict[str, Any], *, patch: bool) -> Iterator[Any]:
    fields: dict[str, Any] = {**BASE, **schema.own}
    if patch:
        fields = {name: kind for name, kind in fields.items() if name not in schema.fixed}
    else:
        fields["name"] = TEXT
    for name, kind in fields.items():
        if kind == PROPERTIES:
            values: tuple[Any, ...] = WRONG_PROPERTIES
        elif isinstance(kind, tuple):
            values = ("nothing", kind[0].swapcase(), "", 1, True, [], {})
        else:
            values = ANYTHING_ELSE[kind]
        for value in values:
            yield {**base, name: value}


def test_what_is_wrong_is_refused(world: World) -> None:
    """And nothing is written: the lists are as they were."""
    before = listed(world)
    for operation in OPERATIONS:
        if operation.method not in ("POST", "PATCH"):
            continue
        patch = operation.method == "PATCH"
        schemas = schemas_of(operation)
        if parent_of(operation) == "model_artifacts":
            schemas = ()  # whose type is not looked at: below
        for schema in schemas:
            path = world.path(operation)
            for body, status in wrong_bodies(SCHEMAS[schema], world.needed(schema), patch=patch):
                answered = world.old.raw(operation.method, path, body)
                about = (operation, schema, body, answered)
                assert answered["statusCode"] == status, about
                check_error(answered, about)
    for method, path in (("POST", "model_artifacts"), ("PATCH", world.path(MODEL_ARTIFACT))):
        for body, status in wrong_bodies(SCHEMAS["ModelArtifact"], {}, patch=method == "PATCH"):
            if isinstance(body, dict) and body.get("artifactType") != "model-artifact":
                continue
            answered = world.old.raw(method, path, body)
            assert answered["statusCode"] == status, (path, body, answered)
    assert listed(world) == before


MODEL_ARTIFACT = next(each for each in OPERATIONS if each.path == "model_artifacts/{id}")


def listed(world: World) -> str:
    lists = [each.path for each in OPERATIONS if each.is_list and "/" not in each.path]
    return json.dumps([world.old.get(path) for path in lists])


EMPTY_OF_MISSING = (
    *("registered_models/{id}/versions", "model_versions/{id}/artifacts"),
    *("serving_environments/{id}/inference_services", "inference_services/{id}/serves"),
    "experiment_runs/{id}/artifacts",
)
"""Lists below a parent that is not there are empty; all else is 404."""


def test_ids_that_are_none_or_nobodys(world: World) -> None:
    wrong = ("x", "1.5", "2147483648", "9" * 30, "é", "١", " ", "1 2", "null")
    nobodys = ("0", "-1", "2147483647", "007000", world.ids["registered_models"])
    for operation in OPERATIONS:
        if "{id}" not in operation.path:
            continue
        body: dict[str, Any] | None = None
        if operation.method != "GET":
            schema = schemas_of(operation)[0]
            body = world.needed(schema) if operation.method == "POST" else {}
            if SCHEMAS[schema].artifact_type:
                body["artifactType"] = SCHEMAS[schema].artifact_type
        for number in wrong:
            answered = world.old.raw(operation.method, operation.path.replace("{id}", number), body)
            assert answered["statusCode"] == 400, (operation, number, answered)
            check_error(answered, operation)
        for number in nobodys:
            if number == world.ids[parent_of(operation)] or (
                number == "0" and operation.path.startswith("experiments")
            ):
                continue
            answered = world.old.raw(operation.method, operation.path.replace("{id}", number), body)
            about = (operation, number, answered)
            if operation.is_list and operation.path in EMPTY_OF_MISSING:
                assert answered["statusCode"] == 200, about
                assert json.loads(answered["body"])["items"] == [], about
            else:
                assert answered["statusCode"] == 404, about
                check_error(answered, about)


def test_finds(world: World) -> None:
    """By name, by name and parent, by external id; of what is missing 404, of too little 400."""
    for operation in OPERATIONS:
        if operation.method != "GET" or operation.is_list or "/" in operation.path:
            continue
        path, schema = f"{operation.path}s", operation.schema
        body = world.needed("ModelArtifact" if schema == "Artifact" else schema)
        parent: str | None = None
        collection = path
        for name, above in (
            ("registeredModelId", "registered_models"),
            ("servingEnvironmentId", "serving_environments"),
            ("experimentId", "experiments"),
        ):
            parent = world.ids[above] if name in body else parent
        if path == "inference_services":
            parent = world.ids["serving_environments"]
        if path in ("artifacts", "model_artifacts"):
            parent = world.ids["model_versions"]
            collection = f"model_versions/{parent}/artifacts"
        external = f"ext {next(NAMES)}"
        made = world.old.post(collection, **body, externalId=external)
        named = {"name": made["name"], **({} if parent is None else {"parentResourceId": parent})}
        for api, caller in apis(world, operation):
            shown = caller.get(f"{path}/{made['id']}")
            assert caller.get(operation.path, **named) == shown
            assert caller.get(operation.path, externalId=external) == shown
            check_entity(shown, schema, api)
            for query, status in (
                ({}, 400),
                ({"name": ""}, 400),
                ({"externalId": ""}, 400),
                ({"externalId": external[:-1]}, 404),
                ({"externalId": external.upper()}, 404),
                ({"externalId": "%"}, 404),
                ({"externalId": "é\0"}, 400),
                ({**named, "name": made["name"] + "x"}, 404),
                ({**named, "name": "%"}, 404),
                *(
                    [
                        ({"name": made["name"]}, 400),
                        ({"parentResourceId": parent}, 400),
                        ({**named, "parentResourceId": "x"}, 400),
                        ({**named, "parentResourceId": "2147483648"}, 400),
                        ({**named, "parentResourceId": "2147483647"}, 404),
                    ]
                    if parent is not None
                    else []
                ),
            ):
                answered = caller.raw("GET", operation.path, None, **query)
                assert answered["statusCode"] == status, (operation, query, answered)
                check_error(answered, (operation, query))


def test_parameters_of_lists(world: World) -> None:
    refused: tuple[tuple[str, str], ...] = (
        *(("pageSize", value) for value in ("x", "1.5", "2147483648", "9" * 30, "1 ", "١", "é")),
        *(("nextPageToken", value) for value in ("%", "eA==", "é", "MTox" * 400, "MTp4", "MQ==")),
        *(("filterQuery", value) for value in ("name", "name =", "'", "a = 1 b", "(", "é = 1")),
        *(("filterQuery", "(" * 200), ("filterQuery", "id = 'x'")),
    )
    taken: tuple[tuple[str, str], ...] = (
        *(("pageSize", value) for value in ("", "0", "-1", "1", "2147483647", "+2")),
        *(("orderBy", value) for value in ("", "ID", "CREATE_TIME", "nothing", "é")),
        *(("sortOrder", value) for value in ("", "ASC", "desc", "nothing")),
        *(("nextPageToken", ""), ("filterQuery", " "), ("unknown", "é")),
        *(("filterQuery", "name = 'é'"), ("filterQuery", "missing > 1 AND id IN ()")),
    )
    for operation in OPERATIONS:
        if not operation.is_list:
            continue
        path = world.path(operation)
        more = ("artifactType", "nothing"), ("artifactType", "null")
        wanted = more if operation.schema == "Artifact" else ()
        for name, value in (*refused, *wanted):
            answered = world.old.raw("GET", path, None, **{name: value})
            assert answered["statusCode"] == 400, (operation, name, value, answered)
            check_error(answered, operation)
        for api, caller in apis(world, operation):
            for name, value in taken:
                answer = caller.ask("GET", path, **{name: value})
                assert answer.status == 200, (operation, name, value, answer)
                check_page(answer.body, operation.schema, api)
            pages = caller.items(path, pageSize=1)
            assert pages == caller.get(path)["items"], operation


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "HEAD", "POST"])
def test_methods_that_an_operation_has_not(world: World, method: str) -> None:
    served = {(route.method, route.path) for route in kubeflow.app.PLAIN_ROUTES}
    for operation in OPERATIONS:
        if (method, f"/api/model_registry/{OLD}/{operation.path}") in served or method == "HEAD":
            continue
        answered = world.old.raw(method, world.path(operation))
        assert (answered["statusCode"], answered["body"]) == (405, ""), (operation, answered)
