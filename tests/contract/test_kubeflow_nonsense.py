"""Every route of Kubeflow's API, asked anything: an answer in its shape, and never a 5xx."""

from __future__ import annotations

import json
import re
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import kubeflow.app
from mlcore.kubeflow.kinds import ARTIFACTS, KINDS
from tests.contract.conftest import EXAMPLES, Store
from tests.contract.kubeflow_api import KubeflowApi

TEXTS = st.text(max_size=12) | st.sampled_from(["", "1", "2", "99", "a", "LIVE", "\0", "é" * 300])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
PROPERTY = st.fixed_dictionaries(
    {
        "metadataType": st.sampled_from(["Int", "Double", "Bool", "String", "Struct", "Proto"]).map(
            lambda word: f"Metadata{word}Value"
        )
    },
    optional={f"{word}_value": SCALARS for word in ("int", "double", "bool", "string", "struct")},
)
FIELDS = sorted(
    {field.name for kind in KINDS.values() for field in kind.fields}
    | {"name", "description", "externalId", "id", "unknown"}
)
BODIES = st.dictionaries(st.sampled_from(FIELDS), SCALARS | st.lists(TEXTS, max_size=2)).flatmap(
    lambda body: st.fixed_dictionaries(
        {name: st.just(value) for name, value in body.items()},
        optional={
            "customProperties": st.dictionaries(TEXTS, PROPERTY | SCALARS, max_size=2),
            "artifactType": st.sampled_from([*ARTIFACTS, "x"]) | SCALARS,
        },
    )
)
QUERIES = st.dictionaries(
    st.sampled_from(
        [
            *("name", "externalId", "parentResourceId", "filterQuery", "pageSize", "orderBy"),
            *("sortOrder", "nextPageToken", "artifactType", "stepIds"),
        ]
    ),
    TEXTS | st.sampled_from(["name = 'x'", "a.int_value > 3 AND (b = 1.5)", "ID", "DESC", "MTox"]),
    max_size=3,
)
ROUTES = [(route.method, route.path) for route in kubeflow.app.PLAIN_ROUTES]


@pytest.fixture
def peopled(store: Store) -> KubeflowApi:
    """Each kind has an entity with a number between 1 and 9."""
    api = KubeflowApi()
    model = api.model("m")
    version = api.version(model["id"], "v")
    environment = api.post("serving_environments", name="p")
    body = {"registeredModelId": model["id"], "servingEnvironmentId": environment["id"]}
    service = api.post("inference_services", **body)
    api.post(f"inference_services/{service['id']}/serves", modelVersionId=version["id"])
    experiment = api.post("experiments", name="e")
    run = api.post("experiment_runs", experimentId=experiment["id"])
    for parent in (f"model_versions/{version['id']}", f"experiment_runs/{run['id']}"):
        for number, kind in enumerate(ARTIFACTS):
            api.post(f"{parent}/artifacts", artifactType=kind, name=f"a{number}", value=1) if (
                kind == "metric"
            ) else api.post(f"{parent}/artifacts", artifactType=kind, name=f"a{number}")
    return api


def check(route: tuple[str, str], answered: dict[str, Any]) -> None:
    status, text = answered["statusCode"], answered["body"]
    assert status < 500, (route, answered)
    if status in (204, 405):
        return
    body = json.loads(text)
    assert answered["headers"]["content-type"].startswith("application/json")
    if status >= 400:
        assert set(body) == {"code", "message"}, (route, answered)
        assert isinstance(body["message"], str)


@settings(
    max_examples=400 * EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    route=st.sampled_from(ROUTES),
    number=st.integers(1, 9) | st.sampled_from(["x", "0", "-1", "99999999999", "é"]),
    body=BODIES | st.lists(SCALARS) | SCALARS,
    query=QUERIES,
)
def test_nothing_fails(
    peopled: KubeflowApi, route: tuple[str, str], number: object, body: Any, query: dict[str, str]
) -> None:
    method, path = route
    path = re.sub(r"\{\w+\}", str(number), path)
    sent = body if method in ("POST", "PATCH") else None
    check(route, peopled.raw(method, path, sent, **query))
