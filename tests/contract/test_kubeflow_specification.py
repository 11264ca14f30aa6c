"""Kubeflow's API against its specification: what is right comes back as it was sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

import kubeflow.app
from tests.contract.conftest import EXAMPLES
from tests.contract.kubeflow_api import OLD, V1
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
    Schema,
)
from tests.contract.kubeflow_world import (
    NAMES,
    World,
    apis,
    check_entity,
    check_page,
    schemas_of,
    world,
)

__all__ = ["world"]


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
                    body = {"description": f"d{next(NAMES)}"}
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
).map(lambda parts: {"metadataType": f"Metadata{parts[0]}Value", parts[1]: parts[2]})
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
            fields["externalId"] += f" {next(NAMES)}"
        # A run ends when it has begun, which the server would say for one that begins now.
        if fields.get("endTimeSinceEpoch") is not None:
            fields["endTimeSinceEpoch"] = str(2**43 + int(fields["endTimeSinceEpoch"]))
    body = {**world.needed(schema), **first}
    made = caller.post(path, **body)
    check_entity(made, schema, api)
    assert_same(made, body, api)
    entity_path = f"{path}/{made['id']}"
    assert caller.get(entity_path) == made
    kept = {"artifactType": made["artifactType"]} if "artifactType" in made else {}
    changed = caller.patch(entity_path, **kept, **second)
    check_entity(changed, schema, api)
    assert_same(changed, {**body, **second}, api)
    assert caller.get(entity_path) == changed


def assert_same(shown: dict[str, Any], sent: dict[str, Any], api: str) -> None:
    for name, value in sent.items():
        expected = str(value) if name == "step" and api == V1 else value
        actual = shown.get(name, "" if value == "" else None)
        assert actual == expected, (name, value, shown)
