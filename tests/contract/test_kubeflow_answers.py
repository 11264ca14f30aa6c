"""The shape of Kubeflow's answers: errors, what differs between the versions of its API, pages and
filters."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from kubeflow import app as kubeflow_app
from tests.contract.conftest import Store
from tests.contract.kubeflow_api import OLD, V1, KubeflowApi, properties

MISSING = {"code": "Not Found", "message": "no registered model found for id 77: not found"}


@pytest.fixture
def kubeflow(store: Store) -> KubeflowApi:
    return KubeflowApi()


def test_errors_have_kubeflows_shape(kubeflow: KubeflowApi) -> None:
    assert kubeflow.ask("GET", "registered_models/77")[:2] == (404, MISSING)
    cases: list[tuple[str, str, Any, int]] = [
        ("POST", "registered_models", {}, 422),
        ("POST", "registered_models", {"name": ""}, 422),
        ("POST", "registered_models", {"name": "a", "x": 1}, 400),
        ("POST", "registered_models", {"name": "a", "state": "X"}, 400),
        ("POST", "registered_models", {"name": "a\0"}, 400),
        ("POST", "registered_models", {"name": 5}, 400),
        ("POST", "registered_models", "[", 400),
        ("POST", "registered_models", {"name": "a" * 256}, 400),
        ("GET", "registered_models/x", None, 400),
        ("GET", "registered_models/99999999999", None, 400),
        ("GET", "registered_model", None, 400),
        ("GET", "model_version?name=a", None, 400),
        ("POST", "model_versions", {"name": "v"}, 422),
        ("POST", "model_versions", {"name": "v", "registeredModelId": "77"}, 404),
        ("POST", "artifacts", {"artifactType": "nothing"}, 400),
        ("POST", "artifacts", {"artifactType": "metric", "name": "m"}, 400),
        ("POST", "model_versions/77/artifacts", {"artifactType": "doc-artifact"}, 404),
        ("GET", "experiments/77/experiment_runs", None, 404),
        ("GET", "experiment_runs/77/metric_history", None, 404),
        ("PUT", "registered_models", {}, 405),
        ("DELETE", "registered_models", None, 405),
    ]
    for method, url, body, status in cases:
        path, _, parameter = url.partition("?")
        query = dict([parameter.split("=")]) if parameter else {}
        answer = kubeflow.ask(method, path, body, **query)
        assert answer.status == status, (method, url, body, answer)
        if status != 405:
            assert set(answer.body) == {"code", "message"}
    missing = kubeflow.raw("GET", "/api/model_registry/v1/nothing")
    assert (missing["statusCode"], missing["body"]) == (404, "404 page not found\n")


def test_the_two_versions_differ_where_they_should(kubeflow: KubeflowApi) -> None:
    new = KubeflowApi(V1)
    version = kubeflow.version(kubeflow.model("m")["id"], "v")
    metric = {"artifactType": "metric", "name": "x", "value": 1, "step": 3}
    made = kubeflow.post(f"model_versions/{version['id']}/artifacts", **metric)
    assert made["step"] == 3
    assert new.get(f"artifacts/{made['id']}")["step"] == "3"
    answer = kubeflow.raw("GET", f"artifacts/{made['id']}")
    assert answer["headers"]["deprecation"] == "true"
    assert "deprecation" not in new.raw("GET", f"artifacts/{made['id']}")["headers"]
    assert new.raw("GET", "experiments")["statusCode"] == 404
    assert OLD in str(kubeflow.event("GET", "x", None, {}))


def test_lists_are_paged_with_stable_tokens(kubeflow: KubeflowApi) -> None:
    for number in range(7):
        kubeflow.model(f"m{number}", customProperties=properties(n=number, x=number / 2))
    names = [f"m{number}" for number in range(7)]
    for order in ("ID", "CREATE_TIME", "LAST_UPDATE_TIME"):
        for direction, expected in (("ASC", names), ("DESC", names[::-1])):
            query = {"pageSize": 3, "orderBy": order, "sortOrder": direction}
            if order == "ID":
                items = kubeflow.items("registered_models", **query)
                assert [item["name"] for item in items] == expected
            pages = {kubeflow.get("registered_models", **query)["nextPageToken"] for _ in range(3)}
            assert len(pages) == 1
            assert len(kubeflow.items("registered_models", **query)) == 7
    whole = kubeflow.get("registered_models")
    assert (whole["size"], whole["pageSize"], whole["nextPageToken"]) == (7, 0, "")
    assert kubeflow.ask("GET", "registered_models", nextPageToken="%%").status == 400
    assert kubeflow.ask("GET", "registered_models", pageSize="x").status == 400
    filters = {
        "n = 3": ["m3"],
        "n > 4 AND n < 6": ["m5"],
        "(n = 1 OR n = 2) AND x >= 1": ["m2"],
        "x.double_value = 3": ["m6"],
        "n.double_value = 3": [],
        "name LIKE 'm%' AND n IN (0, 6)": ["m0", "m6"],
        "name ILIKE 'M3'": ["m3"],
        "state = 'ARCHIVED'": [],
        "missing != 1": [],
        "n IN ()": [],
    }
    for text, expected in filters.items():
        items = kubeflow.items("registered_models", filterQuery=text)
        assert [item["name"] for item in items] == expected, text
    for text in ("name", "name = ", "n.string_value = 5", "id = 'x'", "a = 1 and b = 2", "'"):
        assert kubeflow.ask("GET", "registered_models", filterQuery=text).status == 400, text


PYTHON = "OpenAPI-Generator/1.0.0/python"


def test_a_metric_that_is_not_a_number(store: Store, kubeflow: KubeflowApi) -> None:
    """Every client finds the value that the schema demands, in JSON that its parser reads."""
    run_id = store.api.new_run()
    store.api.post("runs/log-metric", run_id=run_id, key="loss", value="NaN", timestamp=7)
    (run,) = kubeflow.items("experiment_runs")
    paths = [
        f"experiment_runs/{run['id']}/artifacts",
        f"experiment_runs/{run['id']}/metric_history",
        "artifacts",
        "experiment_runs/metric_history",
    ]
    for path in paths:
        text = kubeflow.raw("GET", path)["body"]
        (metric,) = json.loads(text, parse_constant=pytest.fail)["items"]
        assert (metric["value"], metric["customProperties"]) == (0, properties(is_nan=True)), path
        event = kubeflow.event("GET", path, None, {})
        event["headers"] = {**event["headers"], "user-agent": PYTHON}
        (metric,) = json.loads(kubeflow_app.handler(event, None)["body"])["items"]
        assert math.isnan(metric["value"]), path
        assert metric["customProperties"] == {}
    (shown,) = kubeflow.items(paths[0])
    # What is written back as it was read is what it was.
    echoed = {**{name: shown[name] for name in ("value", "customProperties")}, "description": "d"}
    artifact_path = f"artifacts/{shown['id']}"
    assert kubeflow.patch(artifact_path, artifactType="metric", **echoed)["value"] == 0
    (again,) = kubeflow.items(paths[0])
    assert again["customProperties"] == properties(is_nan=True)
    assert again["description"] == "d"
    latest = store.api.get("runs/get", run_id=run_id)["run"]["data"]["metrics"]
    assert [point["value"] for point in latest] == ["NaN"]
    kubeflow.patch(artifact_path, artifactType="metric", value=2, step=1)
    (again,) = kubeflow.items(paths[0])
    assert (again["value"], again["customProperties"]) == (2, {})


def test_equal_answers_are_the_same_text(kubeflow: KubeflowApi) -> None:
    """Whatever the order in which properties were given, or are stored."""
    values = {name: number for number, name in enumerate("zyxabc")}
    model = kubeflow.model("m", customProperties=properties(**values))
    path = f"registered_models/{model['id']}"
    made = json.dumps(model)
    assert json.dumps(kubeflow.get(path)) == made
    assert list(model["customProperties"]) == sorted(values)
    backwards = properties(**dict(reversed(values.items())))
    changed = kubeflow.patch(path, customProperties=backwards)
    assert json.dumps(changed["customProperties"]) == json.dumps(model["customProperties"])
    (listed,) = kubeflow.items("registered_models")
    assert json.dumps(listed) == json.dumps(changed)


def test_escapes_of_a_pattern_stand_for_themselves(kubeflow: KubeflowApi) -> None:
    for name in ("a%b", "a_b", "axb", "a\\b", "A%B"):
        kubeflow.model(name)
    for pattern, expected in (
        (r"name LIKE 'a\%b'", ["a%b"]),
        (r"name LIKE 'a\_b'", ["a_b"]),
        (r"name LIKE '%\%%'", ["a%b", "A%B"]),
        (r"name ILIKE 'a\%_'", ["a%b", "A%B"]),
        ("name LIKE 'a_b'", ["a%b", "a_b", "axb", "a\\b"]),
        (r"name LIKE 'a\\b'", ["a\\b"]),
        (r"name = 'a\%b'", ["a%b"]),
    ):
        names = [item["name"] for item in kubeflow.items("registered_models", filterQuery=pattern)]
        assert names == expected, pattern
    for wrong in ("name LIKE 5", "name LIKE true"):
        assert kubeflow.ask("GET", "registered_models", filterQuery=wrong).status == 400
    for text in ("experimentId = 'text'", "experimentRunId IN ('text')"):
        assert kubeflow.ask("GET", "artifacts", filterQuery=text).status == 400
