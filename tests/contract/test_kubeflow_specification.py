"""Kubeflow's API against its specification: each operation with what is right, and with what is
missing, of the wrong type, too long, too large or no id. What is right comes back as it was
sent."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import kubeflow.app
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.kubeflow_api import OLD, V1, KubeflowApi
from tests.contract.kubeflow_specification import (
    ARTIFACTS,
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
    Operation,
    Schema,
)

COMMON = ("id", "name", "createTimeSinceEpoch", "lastUpdateTimeSinceEpoch", "customProperties")
MEMBERS: dict[str, tuple[str, Any]] = {
    "MetadataStringValue": ("string_value", str),
    "MetadataIntValue": ("int_value", str),
    "MetadataDoubleValue": ("double_value", int | float),
    "MetadataBoolValue": ("bool_value", bool),
    "MetadataStructValue": ("struct_value", str),
}


def test_the_routes_are_the_operations() -> None:
    """Nothing is missing, and DELETE alone is more."""
    served = {
        (route.method, route.path.removeprefix("/api/model_registry/"))
        for route in kubeflow.app.PLAIN_ROUTES
        if route.method != "DELETE" and "/readyz" not in route.path
    }
    promised = {(each.method, f"{OLD}/{each.path}") for each in OPERATIONS}
    assert len(promised) == 56
    newer = {(each.method, f"{V1}/{each.path}") for each in OPERATIONS if not each.old_only}
    assert len(newer) == 40
    assert served == promised | newer


# ------------------------------------------------------------------ the shape of answers


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


# ------------------------------------------------------------------ what is right


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
        made: dict[str, Any] = {"name": f"n{next(_names)}"}
        references = self.references()
        for name in SCHEMAS[schema].required:
            made[name] = made["name"] if name == "name" else references.get(name, 1.5)
        if SCHEMAS[schema].artifact_type:
            made["artifactType"] = SCHEMAS[schema].artifact_type
        return made


_names = itertools.count()


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


def test_each_operation_answers_its_schema(world: World) -> None:
    for operation in OPERATIONS:
        path = world.path(operation)
        for api, caller in apis(world, operation):
            for schema in schemas_of(operation):
                body: dict[str, Any] | None = None
                query: dict[str, Any] = {}
                if operation.method == "POST":
                    body = world.needed(schema)
                elif operation.method == "PATCH":
                    body = {"description": f"d{next(_names)}"}
                    if SCHEMAS[schema].artifact_type:
                        body["artifactType"] = SCHEMAS[schema].artifact_type
                elif operation.is_list:
                    query = {"pageSize": 3, "orderBy": "LAST_UPDATE_TIME", "sortOrder": "DESC"}
                elif "/" not in path:
                    continue  # a find, which is asked below
                answer = caller.ask(operation.method, path, body, **query)
                upserted = operation.path.endswith("}/artifacts") and operation.method == "POST"
                in_place = upserted and schema not in ("ModelArtifact", "DocArtifact")
                assert answer.status == (200 if in_place else operation.status), (path, answer)
                if operation.is_list:
                    check_page(answer.body, operation.schema, api)
                    continue
                check_entity(answer.body, schema, api)
                for name, value in (body or {}).items():
                    shown = answer.body[name]
                    assert shown == value, (path, name)


VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
NUMBERS = st.integers(-(2**31), 2**31 - 1)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | VALUES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(VALUES, inner, max_size=2),
    max_leaves=4,
)
PROPERTY = st.one_of(
    VALUES.map(lambda text: ("String", "string_value", text)),
    NUMBERS.map(lambda number: ("Int", "int_value", str(number))),
    st.floats(allow_nan=False, allow_infinity=False).map(
        lambda number: ("Double", "double_value", number)
    ),
    st.booleans().map(lambda flag: ("Bool", "bool_value", flag)),
    JSONS.map(
        lambda data: (
            "Struct",
            "struct_value",
            base64.b64encode(json.dumps(data).encode()).decode(),
        )
    ),
).map(lambda told: {"metadataType": f"Metadata{told[0]}Value", told[1]: told[2]})
KEYS = VALUES.filter(lambda key: key and not key.startswith(("mlflow.", "kubeflow.")))
RIGHT: dict[str, st.SearchStrategy[Any]] = {
    TEXT: VALUES,
    TEXTS: st.lists(VALUES, max_size=3),
    DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    INT64: st.integers(-(2**53), 2**53),
    TIME: st.integers(0, 2**42).map(str),
    PROPERTIES: st.dictionaries(KEYS, PROPERTY, max_size=3),
}


def right(schema: Schema, *, patch: bool) -> st.SearchStrategy[dict[str, Any]]:
    own = {name: kind for name, kind in schema.own.items() if kind != ID}
    if patch:
        own = {name: kind for name, kind in own.items() if name not in schema.fixed}
    strategies = {
        name: st.sampled_from(kind) if isinstance(kind, tuple) else RIGHT[kind]
        for name, kind in {**BASE, **own}.items()
    }
    return st.fixed_dictionaries({}, optional=strategies)


CREATED = {
    "RegisteredModel": "registered_models",
    "ModelVersion": "model_versions",
    "ServingEnvironment": "serving_environments",
    "InferenceService": "inference_services",
    "Experiment": "experiments",
    "ExperimentRun": "experiment_runs",
    **dict.fromkeys(ARTIFACTS, "artifacts"),
}
SENT = st.sampled_from(sorted(CREATED)).flatmap(
    lambda name: st.tuples(
        st.just(name), right(SCHEMAS[name], patch=False), right(SCHEMAS[name], patch=True)
    )
)


@settings(
    max_examples=60 * EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sent=SENT, newer=st.booleans())
def test_what_is_right_comes_back(
    world: World, sent: tuple[str, dict[str, Any], dict[str, Any]], newer: bool
) -> None:
    schema, first, second = sent
    path = CREATED[schema]
    api = V1 if newer and not path.startswith("experiment") else OLD
    caller = world.new if api == V1 else world.old
    for fields in (first, second):
        if "externalId" in fields:
            fields["externalId"] += f" {next(_names)}"
        # A run ends when it has begun, which the server would say for one that begins now.
        if fields.get("endTimeSinceEpoch") is not None:
            fields["endTimeSinceEpoch"] = str(2**43 + int(fields["endTimeSinceEpoch"]))
    body = {**world.needed(schema), **first}
    made = caller.post(path, **body)
    check_entity(made, schema, api)
    assert_same(made, body, api)
    place = f"{path}/{made['id']}"
    assert caller.get(place) == made
    kept = {"artifactType": made["artifactType"]} if "artifactType" in made else {}
    changed = caller.patch(place, **kept, **second)
    check_entity(changed, schema, api)
    assert_same(changed, {**body, **second}, api)
    assert caller.get(place) == changed


def assert_same(shown: dict[str, Any], sent: dict[str, Any], api: str) -> None:
    for name, value in sent.items():
        expected = str(value) if name == "step" and api == V1 else value
        found = shown.get(name, "" if value == "" else None)
        assert found == expected, (name, value, shown)


# ------------------------------------------------------------------ what is wrong

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
        place = path
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
            place = f"model_versions/{parent}/artifacts"
        external = f"ext {next(_names)}"
        made = world.old.post(place, **body, externalId=external)
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
